#include "runtime/launch/signal_queue.h"

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"

namespace planc {

SignalQueue::SignalQueue() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGCHLD);
  // The system would keep blocked ones that are ignored.
  for (const int signal : ActiveStopSignals()) sigaddset(&signals, signal);
  pthread_sigmask(SIG_BLOCK, &signals, &previous_);
  noted_ = ScopedStopSignals::Request();
  descriptor_ = Socket(signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
}

SignalQueue::~SignalQueue() { pthread_sigmask(SIG_SETMASK, &previous_, nullptr); }

StopRequest SignalQueue::Next() {
  if (noted_.signal != 0) return std::exchange(noted_, {});
  StopRequest request;
  signalfd_siginfo info;
  if (read(descriptor_.get(), &info, sizeof(info)) != sizeof(info)) return request;
  request.signal = static_cast<int>(info.ssi_signo);
  request.kernel = info.ssi_code == SI_KERNEL;
  if (info.ssi_code <= 0) request.sender = static_cast<pid_t>(info.ssi_pid);
  if (request.sender > 0) request.program = ProgramOf(request.sender);
  return request;
}

StopRequest SignalQueue::AwaitStop(absl::Duration time) {
  const absl::Time end = absl::Now() + time;
  while (true) {
    for (StopRequest next = Next(); next.signal != 0; next = Next()) {
      if (next.signal != SIGCHLD) return next;
    }
    const int64_t left = absl::ToInt64Milliseconds(end - absl::Now());
    if (left <= 0) return {};
    pollfd polled = {descriptor_.get(), POLLIN, 0};
    poll(&polled, 1, static_cast<int>(std::min<int64_t>(left, 60'000)));
  }
}

}  // namespace planc
