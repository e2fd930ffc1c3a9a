// Lets gradients of layers live where activations were saved. With one microbatch the gradient of a
// layer is first written when the layers above it are done with what they saved, so it takes one of
// their slots. What layers save is split in two pools, so that the slots that are shared are hardly
// larger than the gradients: there is one slot more than layers, for the first gradient.
#include <algorithm>
#include <cstdint>
#include <set>

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
    if (gradient_pools_.empty() || !ChooseSaved()) return;
    const int shared = g_.AddPool(kSharedPool, MemoryKind::kActivations, PoolSlots::kDynamic);
    for (ValueId id : chosen_) g_.values[id].pool = shared;
    int64_t offset = 0;
    for (int pool : gradient_pools_) {
      for (GraphValue& value : g_.values) {
        if (value.pool != pool) continue;
        value.pool = shared;
        value.role = kGradientRole;
        if (value.alias_of < 0) value.offset += offset;
      }
      offset += AlignedBytes(g_.pools[pool].stride);
    }
    g_.pools[shared].stride = offset;
    while (!gradient_pools_.empty()) {
      RemovePool(*gradient_pools_.rbegin());
      gradient_pools_.erase(std::prev(gradient_pools_.end()));
    }
  }

 private:
  // Pools that keep a gradient for each layer, and the bytes of one layer.
  void FindGradients() {
    for (size_t p = 0; p < g_.pools.size(); ++p) {
      const GraphPool& pool = g_.pools[p];
      if (pool.kind != MemoryKind::kGradients || pool.slots != PoolSlots::kLayers) continue;
      gradient_pools_.insert(static_cast<int>(p));
      gradient_bytes_ += AlignedBytes(pool.stride);
    }
  }

  // The saved values with the fewest bytes that hold a gradient; false when there are none, or when
  // a stage has so few layers that the additional slot costs more than it saves.
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
    int64_t best = INT64_MAX;
    uint32_t best_set = 0;
    for (uint32_t set = 0; set < uint32_t{1} << saved.size(); ++set) {
      int64_t bytes = 0;
      for (size_t i = 0; i < saved.size(); ++i) {
        if ((set >> i & 1) != 0) bytes += sizes[i];
      }
      if (bytes < gradient_bytes_ || bytes >= best) continue;
      best = bytes;
      best_set = set;
    }
    for (size_t i = 0; i < saved.size(); ++i) {
      if ((best_set >> i & 1) != 0) chosen_.push_back(saved[i]);
    }
    return !chosen_.empty() && best < FewestLayers() * gradient_bytes_;
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
  std::set<int> gradient_pools_;
  int64_t gradient_bytes_ = 0;
  std::vector<ValueId> chosen_;
};

}  // namespace

absl::Status ShareSlots(StepGraph& graph) {
  SharePass(graph).Run();
  return absl::OkStatus();
}

}  // namespace planc
