#ifndef PLANC_RUNTIME_LAUNCH_PROCESS_START_H_
#define PLANC_RUNTIME_LAUNCH_PROCESS_START_H_

#include <cstdint>

#include "absl/status/statusor.h"

namespace planc {

// When a process of this machine was started, in clock ticks since boot: with the boot it tells a
// process from a later one of the same id. Errors: NotFound when the process is not to be seen;
// FailedPrecondition when it has ended and only waits to be reaped.
absl::StatusOr<int64_t> ProcessStart(int64_t pid);

}  // namespace planc

#endif  // PLANC_RUNTIME_LAUNCH_PROCESS_START_H_
