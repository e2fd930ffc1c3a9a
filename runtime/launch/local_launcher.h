#ifndef PLANC_RUNTIME_LAUNCH_LOCAL_LAUNCHER_H_
#define PLANC_RUNTIME_LAUNCH_LOCAL_LAUNCHER_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "runtime/launch/run_fault.h"

namespace planc {

// Where ranks that are started again go on.
struct RestartPoint {
  std::string identity;                // differs for every checkpoint that is written; empty: none
  std::string description;             // "step 40, from runs/demo/checkpoints/step-00000040"
  std::vector<std::string> arguments;  // what the ranks are given in addition
};

struct LocalLaunchOptions {
  std::string executable = "/proc/self/exe";
  std::vector<std::string> arguments;  // argv of every rank, argv[0] included
  int64_t world_size = 1;
  std::string log_directory;  // gets rank-0.log, rank-1.log, ...; created when missing
  // The line that the logs of this start begin with, behind those of earlier starts, which stay;
  // without one the logs begin anew.
  std::string log_heading;
  std::string run;  // what every rank finds as LaunchConfig::run
  // How long the other ranks may take to notice and report that one has died, before they are
  // killed.
  absl::Duration grace = absl::Seconds(10);
  // How often the ranks may be started again after a fault since the last new checkpoint.
  int64_t restarts = 0;
  // The newest checkpoint that a restart may use; empty: the ranks start as they did at first.
  std::function<RestartPoint()> restart_point;
  // The pause before the first restart without a new checkpoint; it doubles with each, up to the
  // longest.
  absl::Duration first_pause = absl::Seconds(1);
  absl::Duration longest_pause = absl::Seconds(60);
};

// Starts one process per rank on this machine and waits for all of them. What rank 0 prints also
// goes to this process's standard output and error. The signals that ask to stop
// (kStopSignals) are passed on, and nothing is started again after one. The ranks die with this
// process, however it ends.
//
// Faults: when a rank is killed by a signal, or ends with code 1, 6 or 7, all ranks are started
// again, as often as `restarts` allows. When a rank, whichever it is, ends in the same step with
// the same code 1 or 6 as one did before, without a new checkpoint in between, that would happen
// again and is not tried. What happened is told on standard error, with the last lines of the log
// of the rank to blame. The log of an attempt is appended to that of the one before.
//
// Returns 0 when every rank ended so; 8 when a signal ended the run and its state is on the disk;
// 130 when a second SIGINT ended the ranks at once;
// else the exit code of the rank that failed first and for its own reason, or 7 when a signal
// killed it. `fault`, if not null, becomes what ended the last attempt, with how often that
// happened in a row. Errors: Internal when the processes or the logs cannot be made.
absl::StatusOr<int> LaunchLocal(const LocalLaunchOptions& options, RunFault* fault = nullptr);

}  // namespace planc

#endif  // PLANC_RUNTIME_LAUNCH_LOCAL_LAUNCHER_H_
