#include "runtime/launch/signals.h"

#include <atomic>

namespace planc {
namespace {

// A signal handler has no argument to reach an object through.
std::atomic<int> received{0};
static_assert(std::atomic<int>::is_always_lock_free);

void Note(int signal) {
  int none = 0;
  if (received.compare_exchange_strong(none, signal) || signal == SIGUSR1) return;
  // Whoever asks twice does not want to wait for the end of the step.
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

void Install(int signal, struct sigaction* previous) {
  struct sigaction action {};
  action.sa_handler = &Note;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(signal, &action, previous);
}

}  // namespace

ScopedStopSignals::ScopedStopSignals() {
  received = 0;
  Install(SIGTERM, &previous_terminate_);
  Install(SIGINT, &previous_interrupt_);
  Install(SIGUSR1, &previous_user_);
  sigset_t stops;
  sigemptyset(&stops);
  for (const int signal : {SIGTERM, SIGINT, SIGUSR1}) sigaddset(&stops, signal);
  pthread_sigmask(SIG_UNBLOCK, &stops, &previous_blocked_);
}

ScopedStopSignals::~ScopedStopSignals() {
  pthread_sigmask(SIG_SETMASK, &previous_blocked_, nullptr);
  sigaction(SIGTERM, &previous_terminate_, nullptr);
  sigaction(SIGINT, &previous_interrupt_, nullptr);
  sigaction(SIGUSR1, &previous_user_, nullptr);
}

int ScopedStopSignals::Received() { return received; }

}  // namespace planc
