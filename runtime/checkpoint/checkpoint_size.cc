#include "runtime/checkpoint/checkpoint_size.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "runtime/checkpoint/shard_boxes.h"

namespace planc {
namespace {

constexpr int64_t kStates = 3;  // master, first and second moment

// Sizes of shards, each worked out once: layers and stages are alike.
class ShardSizes {
 public:
  explicit ShardSizes(const Plan& plan) : plan_(plan) {}

  // Elements of the shard without padding.
  int64_t Of(int unit, int64_t tp, int64_t dp_shard) {
    const auto [known, added] = sizes_.try_emplace({unit, tp, dp_shard}, 0);
    if (!added) return known->second;
    const int64_t count = plan_.units[unit].elements / plan_.mesh[Axis::kDpShard];
    for (const UnitBox& piece : ShardBoxes(plan_, unit, tp, dp_shard * count, count)) {
      known->second += BoxElements(piece.box);
    }
    return known->second;
  }

 private:
  const Plan& plan_;
  std::map<std::tuple<int, int64_t, int64_t>, int64_t> sizes_;
};

}  // namespace

CheckpointSize CheckpointSizeOf(const Plan& plan) {
  CheckpointSize size;
  ShardSizes shards(plan);
  std::map<int64_t, int64_t> nodes;  // bytes of each
  for (int64_t rank = 0; rank < plan.mesh.WorldSize(); ++rank) {
    const Coordinates at = plan.mesh.CoordinatesOf(rank);
    const RankClass& rank_class = plan.classes[at[static_cast<int>(Axis::kPp)]];
    int64_t elements = 0;
    for (int unit = 0; unit < static_cast<int>(plan.units.size()); ++unit) {
      if (!WritesUnit(plan, rank, unit)) continue;
      const int64_t layers =
          plan.units[unit].per_layer ? static_cast<int64_t>(rank_class.layers.size()) : 1;
      elements += layers * shards.Of(unit, at[static_cast<int>(Axis::kTp)],
                                     at[static_cast<int>(Axis::kDpShard)]);
    }
    const int64_t bytes = elements * kStates * static_cast<int64_t>(sizeof(float));
    size.total_bytes += bytes;
    size.largest_rank_bytes = std::max(size.largest_rank_bytes, bytes);
    int64_t& node = nodes[rank / std::max<int64_t>(1, plan.ranks_per_node)];
    node += bytes;
    size.largest_node_bytes = std::max(size.largest_node_bytes, node);
  }
  const int64_t bandwidth = plan.job.cluster().storage_bandwidth();
  if (bandwidth > 0) {
    size.write_seconds =
        static_cast<double>(size.largest_node_bytes) / static_cast<double>(bandwidth);
  }
  return size;
}

}  // namespace planc
