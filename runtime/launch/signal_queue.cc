#include "runtime/launch/signal_queue.h"

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>

#include "absl/time/clock.h"

namespace planc {

SignalQueue::SignalQueue() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGCHLD, SIGTERM, SIGINT, SIGUSR1}) sigaddset(&signals, signal);
  pthread_sigmask(SIG_BLOCK, &signals, &previous_);
  descriptor_ = Socket(signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
}

SignalQueue::~SignalQueue() { pthread_sigmask(SIG_SETMASK, &previous_, nullptr); }

int SignalQueue::Next() const {
  signalfd_siginfo info;
  if (read(descriptor_.get(), &info, sizeof(info)) != sizeof(info)) return 0;
  return static_cast<int>(info.ssi_signo);
}

int SignalQueue::AwaitStop(absl::Duration time) const {
  const absl::Time end = absl::Now() + time;
  while (true) {
    for (int signal = Next(); signal != 0; signal = Next()) {
      if (signal != SIGCHLD) return signal;
    }
    const int64_t left = absl::ToInt64Milliseconds(end - absl::Now());
    if (left <= 0) return 0;
    pollfd polled = {descriptor_.get(), POLLIN, 0};
    poll(&polled, 1, static_cast<int>(std::min<int64_t>(left, 60'000)));
  }
}

}  // namespace planc
