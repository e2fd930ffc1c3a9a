#ifndef PLANC_RUNTIME_LAUNCH_NUMBERED_LAUNCH_H_
#define PLANC_RUNTIME_LAUNCH_NUMBERED_LAUNCH_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/launch/launch.h"

namespace planc {

// The launch as one of launchers.def tells it; nothing when none of them started this process. On
// one machine the ranks meet at a port that follows from the job, on several at MASTER_ADDR and
// MASTER_PORT.
// Errors: InvalidArgument for a variable that is missing or malformed; FailedPrecondition with the
// command to use where several machines are not told where to meet.
absl::StatusOr<std::optional<LaunchConfig>> ReadNumberedLaunch(const Environment& environment);

// FailedPrecondition when this process seems to be one of several that a launcher started, of which
// nothing else is known: each would train alone, into the same files.
absl::Status RefuseUnknownLauncher(const Environment& environment);

// The command for a source of launchers.def; empty for another. `variables`: with those that give
// the processes a meeting point.
std::string NumberedCommand(LaunchSource source, int64_t nodes, int64_t ranks_per_node,
                            bool variables);

// Tells starts apart on one machine: process and start time of the nearest ancestor that lacks
// `variable`, which is the launcher that gave it to this process.
std::string LauncherIdentity(const std::string& variable);

}  // namespace planc

#endif  // PLANC_RUNTIME_LAUNCH_NUMBERED_LAUNCH_H_
