#ifndef PLANC_RUNTIME_LAUNCH_LOCAL_LAUNCHER_H_
#define PLANC_RUNTIME_LAUNCH_LOCAL_LAUNCHER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace planc {

struct LocalLaunchOptions {
  std::string executable = "/proc/self/exe";
  std::vector<std::string> arguments;  // argv of every rank, argv[0] included
  int64_t world_size = 1;
  std::string log_directory;  // gets rank-0.log, rank-1.log, ...; created when missing
  int restart = 0;
  // How long the other ranks may take to notice and report that one has died, before they are
  // killed.
  absl::Duration grace = absl::Seconds(10);
};

// Starts one process per rank on this machine and waits for all of them. What rank 0 prints also
// goes to this process's standard output and error. SIGTERM, SIGINT and SIGUSR1 are passed on.
// The ranks die with this process, however it ends.
//
// Returns 0 when every rank did; else the exit code of the rank that failed first and for its own
// reason, or 7 when a signal killed it, after naming it and the last lines of its log on standard
// error. Errors: Internal when the processes or the logs cannot be made.
absl::StatusOr<int> LaunchLocal(const LocalLaunchOptions& options);

}  // namespace planc

#endif  // PLANC_RUNTIME_LAUNCH_LOCAL_LAUNCHER_H_
