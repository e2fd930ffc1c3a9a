#include "compiler/passes/stage_calls.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace planc {

SlotPool::SlotPool(int size) : size_(size) {
  for (int i = 0; i < size; ++i) free_.push_back(i);
}

int SlotPool::Acquire() {
  peak_ = std::max(peak_, ++live_);
  if (free_.empty()) return 0;  // counting only
  const int slot = free_.front();
  free_.pop_front();
  return slot;
}

void SlotPool::Release(int slot) {
  --live_;
  if (size_ > 0) free_.push_back(slot);
}

StageCalls::StageCalls(const StepGraph& graph, int stage, const LaneSlots& slots)
    : graph_(graph), stage_(stage), slots_(slots) {
  if (slots_.empty()) slots_.resize(graph.pools.size(), {0, 0});
  int next = 0;
  for (const auto& layers : graph.stages[stage].chunk_layers) {
    for (int layer : layers) layer_slots_[layer] = next++;
  }
  for (size_t p = 0; p < graph.pools.size(); ++p) {
    pools_.push_back({SlotPool(slots_[p][0]), SlotPool(slots_[p][1])});
  }
}

int StageCalls::Acquire(const std::string& pool, Lane lane) {
  const int index = graph_.PoolIndex(pool);
  // The slots of the second lane come after those of the first.
  const int slot = pools_[index][static_cast<int>(lane)].Acquire();
  return lane == Lane::kSend ? slots_[index][0] + slot : slot;
}

void StageCalls::Release(const std::string& pool, int slot, Lane lane) {
  const int index = graph_.PoolIndex(pool);
  const int first = lane == Lane::kSend ? slots_[index][0] : 0;
  pools_[index][static_cast<int>(lane)].Release(slot - first);
}

void StageCalls::Bind(const std::string& pool, const std::string& role, int slot) {
  bound_[{graph_.PoolIndex(pool), role}] = slot;
}

void StageCalls::Call(const std::string& block, int layer, int microbatch) {
  const int index = graph_.BlockIndex(block);
  if (index < 0) return;
  planc::Call call;
  call.block = index;
  call.layer = layer;
  call.microbatch = microbatch;
  for (const GraphBinding& binding : graph_.blocks[index].bindings) {
    switch (graph_.pools[binding.pool].slots) {
      case PoolSlots::kOne:
        call.slots.push_back(0);
        break;
      case PoolSlots::kLayers:
        call.slots.push_back(layer_slots_.at(layer));
        break;
      case PoolSlots::kDynamic: {
        const auto found = bound_.find({binding.pool, binding.role});
        call.slots.push_back(found == bound_.end() ? 0 : found->second);
        break;
      }
    }
  }
  calls_.push_back(std::move(call));
}

LaneSlots StageCalls::Peaks() const {
  LaneSlots peaks;
  for (const auto& lanes : pools_) peaks.push_back({lanes[0].peak(), lanes[1].peak()});
  return peaks;
}

namespace {

// Which layer each slot of one gathered pool holds, while the calls are walked.
class GatherWindow {
 public:
  GatherWindow(int slots, std::vector<int> uses) : layer_in_(slots, -1), uses_(std::move(uses)) {}

  // The slot that holds the layer of use `use`; sets `*gather` when it has to be filled first.
  // `window_begin` is the first use that has not run yet.
  int Place(size_t use, size_t window_begin, bool* gather) {
    const int layer = uses_[use];
    *gather = false;
    for (size_t s = 0; s < layer_in_.size(); ++s) {
      if (layer_in_[s] == layer) return static_cast<int>(s);
    }
    *gather = true;
    size_t victim = 0;
    size_t farthest = 0;
    for (size_t s = 0; s < layer_in_.size(); ++s) {
      const size_t next = NextUse(layer_in_[s], window_begin);
      if (next > farthest) {
        farthest = next;
        victim = s;
      }
    }
    layer_in_[victim] = layer;
    return static_cast<int>(victim);
  }

 private:
  size_t NextUse(int layer, size_t from) const {
    for (size_t i = from; i < uses_.size(); ++i) {
      if (uses_[i] == layer) return i;
    }
    return uses_.size() + (layer < 0 ? 1 : 0);
  }

  std::vector<int> layer_in_;
  std::vector<int> uses_;
};

}  // namespace

std::vector<planc::Call> InsertGathers(const StepGraph& graph, const StageCalls& stage_calls,
                                       int64_t prefetch, int slots) {
  // All gathered layer pools are used by the same calls, so one window serves all of them.
  std::vector<planc::Call> calls = stage_calls.calls();
  const auto is_gathered = [&](int pool) {
    return graph.pools[pool].slots == PoolSlots::kDynamic &&
           absl::StartsWith(graph.pools[pool].name, "gathered.");
  };
  std::vector<size_t> use_calls;
  std::vector<int> layers;
  for (size_t i = 0; i < calls.size(); ++i) {
    bool uses = false;
    for (const GraphBinding& b : graph.blocks[calls[i].block].bindings) uses |= is_gathered(b.pool);
    if (!uses) continue;
    use_calls.push_back(i);
    layers.push_back(calls[i].layer);
  }
  GatherWindow window(slots, layers);
  std::vector<planc::Call> result;
  size_t next_call = 0;
  for (size_t use = 0; use < use_calls.size(); ++use) {
    for (; next_call < use_calls[use]; ++next_call) result.push_back(calls[next_call]);
    int slot = 0;
    const size_t end = std::min<size_t>(layers.size(), use + static_cast<size_t>(prefetch) + 1);
    for (size_t ahead = use; ahead < end; ++ahead) {
      bool gather = false;
      const int placed = window.Place(ahead, use, &gather);
      if (ahead == use) slot = placed;
      if (!gather) continue;
      for (const Unit& unit : graph.units) {
        if (!unit.per_layer) continue;
        planc::Call call;
        call.block = graph.BlockIndex("gather." + unit.name);
        call.layer = layers[ahead];
        for (const GraphBinding& b : graph.blocks[call.block].bindings) {
          call.slots.push_back(is_gathered(b.pool) ? placed : stage_calls.LayerSlot(call.layer));
        }
        result.push_back(call);
      }
    }
    planc::Call& call = calls[use_calls[use]];
    const auto& bindings = graph.blocks[call.block].bindings;
    for (size_t b = 0; b < bindings.size(); ++b) {
      if (is_gathered(bindings[b].pool)) call.slots[b] = slot;
    }
  }
  for (; next_call < calls.size(); ++next_call) result.push_back(calls[next_call]);
  return result;
}

}  // namespace planc
