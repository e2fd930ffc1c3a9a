#ifndef PLANC_RUNTIME_LAUNCH_SIGNALS_H_
#define PLANC_RUNTIME_LAUNCH_SIGNALS_H_

#include <sys/types.h>

#include <array>
#include <csignal>
#include <string>
#include <vector>

namespace planc {

// What asks a run to stop with a checkpoint: kill and batch systems (SIGTERM), Ctrl-C (SIGINT), a
// closed terminal (SIGHUP), the signals that users choose (SIGUSR1, SIGUSR2), and the limit of CPU
// time (SIGXCPU).
inline constexpr std::array<int, 6> kStopSignals = {SIGTERM, SIGINT,  SIGHUP,
                                                    SIGUSR1, SIGUSR2, SIGXCPU};

// Those of them that are not ignored, e.g. by nohup.
std::vector<int> ActiveStopSignals();

// A signal that came, and from whom.
struct StopRequest {
  int signal = 0;       // 0: none
  pid_t sender = 0;     // 0: unknown, e.g. outside of this container
  bool kernel = false;  // from the system itself, e.g. for a key of the terminal
  std::string program;  // of the sender, empty when it had ended already
};
// The sender's program as /proc knows it now.
std::string ProgramOf(pid_t process);
// "SIGTERM from process 4242 (timeout)", "SIGINT (Ctrl-C)".
std::string StopText(const StopRequest& request);

// While it lives, the signals that ask to stop only leave a note, so that the step in progress ends
// cleanly. They may come again and in any mixture, as when a batch system signals all processes of
// a job and the launcher passes its signal on: that is one request. Only a second SIGINT, a second
// or more after the first signal, ends the process at once. Those that were blocked until now, as
// in a new rank, arrive; those that are ignored stay so. Objects may be nested.
class ScopedStopSignals {
 public:
  ScopedStopSignals();
  // Restores the handlers and the blocked signals that were there before.
  ~ScopedStopSignals();
  ScopedStopSignals(const ScopedStopSignals&) = delete;
  ScopedStopSignals& operator=(const ScopedStopSignals&) = delete;

  // The first signal that came, 0 if none. Any of them asks to stop after the current step.
  static int Received();
  // The same with its sender.
  static StopRequest Request();

  // While nothing would be lost: a signal writes `message` to standard error and ends the process
  // with kExitStopped. Null: no longer. The text must stay valid.
  static void EndAtOnce(const char* message);

 private:
  struct Previous {
    int signal = 0;
    struct sigaction action {};
  };
  std::vector<Previous> previous_;
  sigset_t previous_blocked_;
};

// For the rest of the process: a write to a pipe that nobody reads (SIGPIPE), or beyond the largest
// size of a file (SIGXFSZ), is an error instead of its end.
void IgnorePipeSignal();
void IgnoreFileSizeSignal();

}  // namespace planc

#endif  // PLANC_RUNTIME_LAUNCH_SIGNALS_H_
