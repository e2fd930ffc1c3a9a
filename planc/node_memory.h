#ifndef PLANC_PLANC_NODE_MEMORY_H_
#define PLANC_PLANC_NODE_MEMORY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "runtime/launch/launch.h"
#include "runtime/launch/memory_room.h"
#include "schemas/plan.h"

namespace planc {

// Host memory that the ranks of one machine need for one thing.
struct NodeMemoryItem {
  std::string name;
  int64_t most_bytes = 0;   // of one rank
  int64_t total_bytes = 0;  // of all ranks of the machine
};

struct NodeMemory {
  int64_t ranks = 0;
  std::vector<NodeMemoryItem> items;
  int64_t total_bytes = 0;         // of all items
  int64_t most_private_bytes = 0;  // of one rank: arenas, snapshots, process
  int64_t most_shared_bytes = 0;   // of one rank: segments that it maps
};

// Private memory of a rank beside its arenas, as measured: RssAnon of ranks of this program less
// their arenas is 2.4 to 3.4 MiB, threads' stacks included.
inline constexpr int64_t kProcessBytes = int64_t{4} << 20;

// What the ranks [`first`, `first` + `ranks`) need: their arenas as planned, the copies from which
// checkpoints are written, the shared memory of groups whose members are all on the machine, and
// the processes. Files are mapped and cost page cache only. REQUIRES: the ranks are of the plan,
// which is for host.
NodeMemory NodeMemoryOf(const Plan& plan, int64_t first, int64_t ranks);
// Of the machine whose ranks need most, with cluster.gpus_per_node of them on each.
NodeMemory FullestNodeMemory(const Plan& plan);

// Everything that bounds a run here.
struct MemoryBounds {
  std::vector<MemoryRoom> node;            // all ranks together
  std::vector<MemoryRoom> private_memory;  // each rank
  std::vector<MemoryRoom> mapped_memory;   // each rank, with program and stacks
  int64_t program_bytes = 0;               // mapped by each
  int64_t stack_bytes = 0;                 // reserved for each thread
};
MemoryBounds BoundsHere();

// Whether the ranks of this machine fit into what is free, before they allocate. `running`: the
// processes are there already, so that they are no longer among what is free. Errors:
// ResourceExhausted with a table of need and room, and what helps.
absl::Status CheckNodeMemory(const Plan& plan, const LaunchConfig& launch, bool running,
                             const MemoryBounds& bounds);

}  // namespace planc

#endif  // PLANC_PLANC_NODE_MEMORY_H_
