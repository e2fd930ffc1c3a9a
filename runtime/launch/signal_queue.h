#ifndef PLANC_RUNTIME_LAUNCH_SIGNAL_QUEUE_H_
#define PLANC_RUNTIME_LAUNCH_SIGNAL_QUEUE_H_

#include <csignal>

#include "absl/time/time.h"
#include "runtime/process_group/socket.h"

namespace planc {

// While it lives, the launcher's signals (SIGCHLD, SIGTERM, SIGINT, SIGUSR1) arrive at a descriptor
// instead of interrupting it.
class SignalQueue {
 public:
  SignalQueue();
  ~SignalQueue();
  SignalQueue(const SignalQueue&) = delete;
  SignalQueue& operator=(const SignalQueue&) = delete;

  int descriptor() const { return descriptor_.get(); }
  // The next signal, 0 when there is none.
  int Next() const;
  // Waits that long, or until a signal asks to stop; returns that signal, or 0.
  int AwaitStop(absl::Duration time) const;

 private:
  sigset_t previous_;
  Socket descriptor_;
};

}  // namespace planc

#endif  // PLANC_RUNTIME_LAUNCH_SIGNAL_QUEUE_H_
