#ifndef PLANC_RUNTIME_LAUNCH_HOSTLIST_H_
#define PLANC_RUNTIME_LAUNCH_HOSTLIST_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace planc {

inline constexpr size_t kMaximumHosts = 65536;

// The host names of a Slurm host list in their order, duplicates kept: "r[1-2]n[08-10,12],gpu01". A
// number of up to 64 bits is as wide as the low bound of its range; of several brackets the left
// one changes slowest. Errors: InvalidArgument for a malformed list, a falling range, text after
// the last bracket of a name, or more than kMaximumHosts names.
absl::StatusOr<std::vector<std::string>> ExpandHostlist(const std::string& list);

// The counts of SLURM_STEP_TASKS_PER_NODE, one per node: "2(x3),1" is 2 2 2 1.
// Errors: InvalidArgument for a malformed list.
absl::StatusOr<std::vector<int64_t>> ExpandTaskCounts(const std::string& list);

}  // namespace planc

#endif  // PLANC_RUNTIME_LAUNCH_HOSTLIST_H_
