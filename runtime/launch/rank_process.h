#ifndef PLANC_RUNTIME_LAUNCH_RANK_PROCESS_H_
#define PLANC_RUNTIME_LAUNCH_RANK_PROCESS_H_

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "schemas/exit_code.h"

namespace planc {

// What to start.
struct RankCommand {
  std::string executable;
  std::vector<std::string> arguments;                            // argv
  std::vector<std::pair<std::string, std::string>> environment;  // set on top of this process's
  int output = -1;  // descriptors that become standard output and error
  int error = -1;
  std::vector<int> inherited;  // more descriptors that stay open under their numbers
};

// Starts a process in a process group of its own. It is killed when this process's calling thread
// ends. It is born with the signals that ask to stop blocked, until ScopedStopSignals is there to
// note them. Errors: Internal.
absl::StatusOr<pid_t> StartRank(const RankCommand& command);

// How a process ended, from waitpid.
struct RankExit {
  int code = 0;    // exit code; 7 (a peer was lost) when a signal ended it
  int signal = 0;  // 0 when it exited
};
RankExit DecodeExit(int wait_status);
// "exit code 3", "signal 9 (Killed)".
std::string ExitText(const RankExit& end);

}  // namespace planc

#endif  // PLANC_RUNTIME_LAUNCH_RANK_PROCESS_H_
