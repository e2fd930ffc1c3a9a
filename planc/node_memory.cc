#include "planc/node_memory.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "planc/text.h"
#include "runtime/process_group/group_use.h"
#include "runtime/process_group/shared_exchange.h"
#include "schemas/counted.h"

namespace planc {
namespace {

const RankClass& ClassOf(const Plan& plan, int64_t rank) {
  return plan.classes[plan.mesh.CoordinatesOf(rank)[static_cast<int>(Axis::kPp)]];
}

// The first member makes a group's segment, so that each is counted once.
struct Shared {
  int64_t made = 0;
  int64_t mapped = 0;
};
Shared SharedBytes(const Plan& plan, int64_t rank, int64_t first, int64_t ranks) {
  Shared shared;
  for (const GroupConnection& connection : ConnectionsOf(plan, rank)) {
    const std::vector<int64_t>& members = connection.membership.members;
    const auto [least, most] = std::minmax_element(members.begin(), members.end());
    if (members.size() < 2 || *least < first || *most >= first + ranks) continue;
    const int64_t size = connection.membership.size();
    shared.mapped += SharedExchange::Bytes(size);
    // Pages that are never used cost nothing: messages have room for each pair of members, but a
    // member sends to one other at a time.
    if (connection.membership.index == 0) shared.made += size * SharedExchange::Bytes(1);
  }
  return shared;
}

void Add(int64_t bytes, NodeMemoryItem* item) {
  item->most_bytes = std::max(item->most_bytes, bytes);
  item->total_bytes += bytes;
}

// What one rank may map, and does not have.
struct Misfit {
  int64_t need = 0;
  int64_t room = 0;
  std::string by;
  bool each = false;  // of each rank, not of all together
};

std::vector<Misfit> MisfitsOf(const NodeMemory& need, const LaunchConfig& launch, bool running,
                              const MemoryBounds& bounds) {
  std::vector<Misfit> misfits;
  const auto compare = [&misfits](int64_t bytes, const std::vector<MemoryRoom>& rooms, bool each) {
    for (const MemoryRoom& room : rooms) {
      if (bytes > room.bytes) misfits.push_back({bytes, room.bytes, room.by, each});
    }
  };
  compare(need.total_bytes - (running ? need.ranks * kProcessBytes : 0), bounds.node, false);
  compare(need.most_private_bytes, bounds.private_memory, true);
  const int64_t further_threads = std::max(0, launch.threads - 1);
  compare(need.most_private_bytes + need.most_shared_bytes + bounds.program_bytes +
              further_threads * bounds.stack_bytes,
          bounds.mapped_memory, true);
  return misfits;
}

std::string Table(const NodeMemory& need, const std::vector<Misfit>& misfits) {
  TextTable table({"host memory of this machine", ">each rank", ">ranks", ">total"});
  for (const NodeMemoryItem& item : need.items) {
    if (item.total_bytes == 0) continue;
    table.Add({item.name, BytesText(item.most_bytes), absl::StrCat(need.ranks),
               BytesText(item.total_bytes)});
  }
  table.AddRule();
  table.Add({"needed", "", absl::StrCat(need.ranks), BytesText(need.total_bytes)});
  std::string text = table.Text(2);
  for (const Misfit& misfit : misfits) {
    absl::StrAppend(&text, misfit.each ? "  each rank needs " : "  all ranks need ",
                    BytesText(misfit.need), ", free are ", BytesText(misfit.room), ", by ",
                    misfit.by, "\n");
  }
  return text;
}

std::string WhatHelps(const Plan& plan, const NodeMemory& need) {
  std::string text = "  what helps: ";
  int64_t snapshots = 0;
  for (const RankClass& rank_class : plan.classes) {
    snapshots =
        std::max(snapshots, rank_class.arena_bytes[static_cast<int>(MemoryKind::kHostPinned)]);
  }
  if (snapshots > 0) {
    absl::StrAppend(&text, "checkpoint.async=false saves ", BytesText(snapshots), " a rank; ");
  }
  absl::StrAppend(&text,
                  "recompute, batch.micro, zero and the mesh (planc plan --show=memory says what "
                  "is largest); ",
                  need.ranks > 1 ? "fewer ranks on each of more machines; " : "",
                  "a larger limit. Where the system says less than there is, "
                  "--no-memory-check starts anyway");
  return text;
}

}  // namespace

NodeMemory NodeMemoryOf(const Plan& plan, int64_t first, int64_t ranks) {
  NodeMemory memory;
  memory.ranks = ranks;
  NodeMemoryItem arenas{"arenas"};
  NodeMemoryItem snapshots{"snapshots for checkpoints"};
  NodeMemoryItem segments{"shared memory of groups"};
  NodeMemoryItem processes{"processes, with stacks"};
  for (int64_t rank = first; rank < first + ranks; ++rank) {
    const RankClass& rank_class = ClassOf(plan, rank);
    const int64_t pinned = rank_class.arena_bytes[static_cast<int>(MemoryKind::kHostPinned)];
    int64_t all = 0;
    for (const int64_t bytes : rank_class.arena_bytes) all += bytes;
    const Shared shared = SharedBytes(plan, rank, first, ranks);
    Add(all - pinned, &arenas);
    Add(pinned, &snapshots);
    Add(shared.made, &segments);
    Add(kProcessBytes, &processes);
    memory.most_private_bytes = std::max(memory.most_private_bytes, all + kProcessBytes);
    memory.most_shared_bytes = std::max(memory.most_shared_bytes, shared.mapped);
  }
  memory.items = {arenas, snapshots, segments, processes};
  for (const NodeMemoryItem& item : memory.items) memory.total_bytes += item.total_bytes;
  return memory;
}

NodeMemory FullestNodeMemory(const Plan& plan) {
  const int64_t world = plan.mesh.WorldSize();
  const int64_t ranks = std::clamp<int64_t>(plan.ranks_per_node, 1, world);
  int64_t fullest = 0;
  int64_t most = -1;
  for (int64_t first = 0; first + ranks <= world; first += ranks) {
    int64_t bytes = 0;
    for (int64_t rank = first; rank < first + ranks; ++rank) {
      for (const int64_t arena : ClassOf(plan, rank).arena_bytes) bytes += arena;
    }
    if (bytes > most) fullest = first;
    most = std::max(most, bytes);
  }
  return NodeMemoryOf(plan, fullest, ranks);
}

MemoryBounds BoundsHere() {
  MemoryBounds bounds;
  bounds.node = NodeMemoryRooms();
  bounds.private_memory = PrivateMemoryLimits();
  bounds.mapped_memory = MappedMemoryLimits();
  bounds.program_bytes = MappedProgramBytes();
  bounds.stack_bytes = ThreadStackBytes();
  return bounds;
}

absl::Status CheckNodeMemory(const Plan& plan, const LaunchConfig& launch, bool running,
                             const MemoryBounds& bounds) {
  const int64_t world = plan.mesh.WorldSize();
  const int64_t first = running ? std::max<int64_t>(0, launch.rank - launch.local_rank) : 0;
  const int64_t ranks = std::min(running ? launch.local_world_size : world, world - first);
  const NodeMemory need = NodeMemoryOf(plan, first, ranks);
  const std::vector<Misfit> misfits = MisfitsOf(need, launch, running, bounds);
  if (misfits.empty()) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "the ", Counted(ranks, "rank"), " of this machine",
      running ? absl::StrCat(" (", launch.host, ")") : std::string(),
      " would not fit into its memory\n", Table(need, misfits), WhatHelps(plan, need)));
}

}  // namespace planc
