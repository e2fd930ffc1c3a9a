// Lets gradients live where activations were saved. With one microbatch the gradient of a layer is
// first written when the layers above it are done with what they saved, so it takes one of their
// slots; that of the token table, where the head has a table of its own, takes the slot of the
// first layer. What layers save is split in two pools, so that the slots that are shared are hardly
// larger than the gradients: there is one slot more than layers, for the first gradient.
#include <algorithm>
#include <cstdint>
#include <set>
#include <vector>

#include "compiler/passes/passes.h"

namespace planc {
namespace {

// Subsets of more saved values than this are not tried.
constexpr size_t kMaxSaved = 20;

class SharePass {
 public:
  explicit SharePass(StepGraph& graph) : g_(graph), saved_(graph.PoolIndex(kSavedPool)) {}

  void Run() {
    // Later microbatches add to the gradients while their own activations are saved.
    if (g_.microbatches != 1) return;
    FindGradients();
    if (layers_.pools.empty() || !ChooseSaved()) return;
    const int shared = g_.AddPool(kSharedPool, MemoryKind::kActivations, PoolSlots::kDynamic);
    for (ValueId id : chosen_) g_.values[id].pool = shared;
    Move(layers_, shared);
    std::set<int> empty = layers_.pools;
    if (table_.bytes <= chosen_bytes_) {
      Move(table_, shared);
      empty.insert(table_.pools.begin(), table_.pools.end());
    }
    for (auto pool = empty.rbegin(); pool != empty.rend(); ++pool) RemovePool(*pool);
  }

 private:
  // Gradients that take one slot together.
  struct Gradients {
    std::set<int> pools;
    std::vector<size_t> units;
    int64_t bytes = 0;
  };

  // All that has a gradient for each layer, and the table if nothing but the embedding writes it.
  void FindGradients() {
    for (size_t u = 0; u < g_.units.size(); ++u) {
      const int p = g_.values[StorageRoot(g_, g_.unit_storage[u].grad_shard)].pool;
      const bool untied_table = HoldsTable(g_.units[u]) && !g_.dims.tied;
      if (!g_.units[u].per_layer && !untied_table) continue;
      Gradients& gradients = g_.units[u].per_layer ? layers_ : table_;
      gradients.pools.insert(p);
      gradients.units.push_back(u);
      gradients.bytes += AlignedBytes(g_.pools[p].stride);
    }
  }

  void Move(const Gradients& gradients, int shared) {
    int64_t offset = 0;
    for (int pool : gradients.pools) {
      for (GraphValue& value : g_.values) {
        if (value.pool != pool) continue;
        value.pool = shared;
        value.role = kGradientRole;
        if (value.alias_of < 0) value.offset += offset;
      }
      offset += AlignedBytes(g_.pools[pool].stride);
    }
    g_.pools[shared].stride = std::max(g_.pools[shared].stride, offset);
    for (size_t unit : gradients.units) g_.unit_storage[unit].gradient_shares_slots = true;
  }

  // Of the sets of saved values that hold a layer's gradients, the one that takes the fewest bytes
  // on all stages; false when there is none, or when a stage has so few layers that the additional
  // slot costs more than it saves.
  bool ChooseSaved() {
    std::vector<ValueId> saved;
    std::vector<int64_t> sizes;
    for (size_t i = 0; i < g_.values.size(); ++i) {
      const auto id = static_cast<ValueId>(i);
      if (g_.values[id].pool != saved_ || g_.values[id].alias_of >= 0) continue;
      saved.push_back(id);
      sizes.push_back(AlignedBytes(LocalBytes(g_, id)));
    }
    if (saved.size() > kMaxSaved) return false;
    const int64_t most = FewestLayers() * layers_.bytes;
    int64_t best = INT64_MAX;
    uint32_t best_set = 0;
    for (uint32_t set = 0; set < uint32_t{1} << saved.size(); ++set) {
      int64_t bytes = 0;
      for (size_t i = 0; i < saved.size(); ++i) {
        if ((set >> i & 1) != 0) bytes += sizes[i];
      }
      if (bytes < layers_.bytes || bytes >= most) continue;
      const int64_t cost = static_cast<int64_t>(g_.stages.size()) * bytes +
                           (bytes < table_.bytes ? table_.bytes : 0);
      if (cost >= best) continue;
      best = cost;
      best_set = set;
      chosen_bytes_ = bytes;
    }
    for (size_t i = 0; i < saved.size(); ++i) {
      if ((best_set >> i & 1) != 0) chosen_.push_back(saved[i]);
    }
    return !chosen_.empty();
  }

  // Layers of the stage that has the fewest.
  int64_t FewestLayers() const {
    int64_t fewest = INT64_MAX;
    for (const StageLayout& stage : g_.stages) {
      int64_t layers = 0;
      for (const auto& chunk : stage.chunk_layers) layers += static_cast<int64_t>(chunk.size());
      fewest = std::min(fewest, layers);
    }
    return fewest;
  }

  // REQUIRES: no value lies in the pool.
  void RemovePool(int pool) {
    g_.pools.erase(g_.pools.begin() + pool);
    for (GraphValue& value : g_.values) {
      if (value.pool > pool) --value.pool;
    }
  }

  StepGraph& g_;
  const int saved_;
  Gradients layers_;
  Gradients table_;
  std::vector<ValueId> chosen_;
  int64_t chosen_bytes_ = 0;
};

}  // namespace

absl::Status ShareSlots(StepGraph& graph) {
  SharePass(graph).Run();
  return absl::OkStatus();
}

}  // namespace planc
