#ifndef PLANC_RUNTIME_LAUNCH_PLACEMENT_H_
#define PLANC_RUNTIME_LAUNCH_PLACEMENT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/launch/launch.h"

namespace planc {

// Where one rank runs, as it says itself.
struct RankPlace {
  std::string host;          // LaunchConfig::host
  int64_t local_rank = 0;    // among the ranks on this host
  std::string address = {};  // numeric, through which the rank sees the store
  std::string machine = {};  // tells machines with one name apart; empty: unknown
};

// One line of text for one place, and back. Errors: InvalidArgument.
std::string PlaceText(const RankPlace& place);
absl::StatusOr<RankPlace> ParsePlace(const std::string& text);

// The command that starts `ranks_per_node` ranks on each of `nodes` machines in the order of the
// mesh: that of launchers.def, srun for kSlurm, else torchrun.
std::string StartCommand(LaunchSource source, int64_t nodes, int64_t ranks_per_node);

// Whether the ranks are where the groups of the mesh want them: rank r on machine
// r / ranks_per_node as its local rank r % ranks_per_node, no machine twice. `places`: by rank. Two
// ranks are on one machine when neither host nor machine differs.
// Errors: FailedPrecondition with the first rank that is elsewhere, the ranks of each machine, and
// the command to use.
absl::Status CheckPlacement(const std::vector<RankPlace>& places, int64_t ranks_per_node,
                            LaunchSource source);

// An address of this job's network: the first of `places` that is not a loopback address, empty
// when all ranks are on one machine.
std::string NetworkAddress(const std::vector<RankPlace>& places);

// Whether a numeric address is a loopback address, which no other machine can reach.
bool IsLoopbackAddress(const std::string& address);

}  // namespace planc

#endif  // PLANC_RUNTIME_LAUNCH_PLACEMENT_H_
