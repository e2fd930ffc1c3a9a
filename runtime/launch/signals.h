#ifndef PLANC_RUNTIME_LAUNCH_SIGNALS_H_
#define PLANC_RUNTIME_LAUNCH_SIGNALS_H_

#include <csignal>

namespace planc {

// While it lives, SIGTERM, SIGINT and SIGUSR1 only leave a note, so that the step in progress ends
// cleanly; a second SIGINT or SIGTERM ends the process at once. Those that were blocked until now,
// as in a new rank, arrive. One object at a time.
class ScopedStopSignals {
 public:
  ScopedStopSignals();
  // Restores the handlers and the blocked signals that were there before.
  ~ScopedStopSignals();
  ScopedStopSignals(const ScopedStopSignals&) = delete;
  ScopedStopSignals& operator=(const ScopedStopSignals&) = delete;

  // The first signal that came, 0 if none. Any of the three asks to stop after the current step.
  static int Received();

 private:
  struct sigaction previous_terminate_;
  struct sigaction previous_interrupt_;
  struct sigaction previous_user_;
  sigset_t previous_blocked_;
};

}  // namespace planc

#endif  // PLANC_RUNTIME_LAUNCH_SIGNALS_H_
