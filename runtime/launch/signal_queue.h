#ifndef PLANC_RUNTIME_LAUNCH_SIGNAL_QUEUE_H_
#define PLANC_RUNTIME_LAUNCH_SIGNAL_QUEUE_H_

#include <csignal>

#include "absl/time/time.h"
#include "runtime/launch/signals.h"
#include "runtime/process_group/socket.h"

namespace planc {

// While it lives, the launcher's signals (SIGCHLD and those that ask to stop) arrive at a
// descriptor instead of interrupting it. A request to stop that ScopedStopSignals noted before
// comes first.
class SignalQueue {
 public:
  SignalQueue();
  ~SignalQueue();
  SignalQueue(const SignalQueue&) = delete;
  SignalQueue& operator=(const SignalQueue&) = delete;

  int descriptor() const { return descriptor_.get(); }
  // The next signal; its signal is 0 when there is none.
  StopRequest Next();
  // Waits that long, or until a signal asks to stop; returns that, or none.
  StopRequest AwaitStop(absl::Duration time);

 private:
  sigset_t previous_;
  Socket descriptor_;
  StopRequest noted_;  // before
};

}  // namespace planc

#endif  // PLANC_RUNTIME_LAUNCH_SIGNAL_QUEUE_H_
