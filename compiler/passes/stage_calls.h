#ifndef PLANC_COMPILER_PASSES_STAGE_CALLS_H_
#define PLANC_COMPILER_PASSES_STAGE_CALLS_H_

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "compiler/graph/step_graph.h"
#include "schemas/plan.h"

namespace planc {

// Hands out the slots of one pool, longest free first, so that a slot's last user on another stream
// has had time to finish. With size 0 it only counts.
class SlotPool {
 public:
  explicit SlotPool(int size = 0);
  int Acquire();
  void Release(int slot);
  int peak() const { return peak_; }

 private:
  int size_;
  int live_ = 0;
  int peak_ = 0;
  std::deque<int> free_;
};

// Slots of one dynamic pool. What is sent to another stage has its own slots: were they shared, the
// receive into a slot could wait for a send whose receiver waits for a send of this stage.
enum class Lane : uint8_t { kStay, kSend };
inline constexpr int kLaneCount = 2;

// How many slots each dynamic pool has, by lane.
using LaneSlots = std::vector<std::array<int, kLaneCount>>;

// Builds the call list of one program of one stage, resolving each binding of a block to a slot.
class StageCalls {
 public:
  // `slots` gives the size of each dynamic pool; empty means counting only.
  StageCalls(const StepGraph& graph, int stage, const LaneSlots& slots);

  // Acquires a slot of the dynamic pool.
  int Acquire(const std::string& pool, Lane lane = Lane::kStay);
  void Release(const std::string& pool, int slot, Lane lane = Lane::kStay);
  // Binds (pool, role) to a slot for the calls that follow.
  void Bind(const std::string& pool, const std::string& role, int slot);
  // Appends a call of `block` if the graph has such a block.
  void Call(const std::string& block, int layer = -1, int microbatch = -1);

  const std::vector<planc::Call>& calls() const { return calls_; }
  // Per pool: most slots that were held at once.
  LaneSlots Peaks() const;
  int LayerSlot(int layer) const { return layer_slots_.at(layer); }
  const StepGraph& graph() const { return graph_; }
  int stage() const { return stage_; }

 private:
  const StepGraph& graph_;
  int stage_;
  std::map<int, int> layer_slots_;  // model layer -> slot of layer pools
  std::vector<std::array<SlotPool, kLaneCount>> pools_;
  LaneSlots slots_;
  std::map<std::pair<int, std::string>, int> bound_;
  std::vector<planc::Call> calls_;
};

// With ZeRO 3: adds the calls that gather layer parameters, `prefetch` uses ahead, into `slots`
// slots per gathered pool, and binds each use to the slot its layer is in. A layer that is still
// there is not gathered again.
std::vector<planc::Call> InsertGathers(const StepGraph& graph, const StageCalls& calls,
                                       int64_t prefetch, int slots);

}  // namespace planc

#endif  // PLANC_COMPILER_PASSES_STAGE_CALLS_H_
