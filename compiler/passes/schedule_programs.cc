// Writes the programs of every stage: which block is called when, with which slots. The pipeline
// schedule gives the order; slots are counted first and then handed out.
#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "compiler/mesh/pipeline_schedule.h"
#include "compiler/passes/passes.h"
#include "compiler/passes/stage_calls.h"
#include "schemas/status.h"

namespace planc {
namespace {

// The calls of the programs of one stage.
class StageScheduler {
 public:
  StageScheduler(const StepGraph& graph, int stage, const LaneSlots& slots)
      : g_(graph), layout_(graph.stages[stage]), calls_(graph, stage, slots) {
    const auto& pipeline = graph.job.parallelism().pipeline();
    shape_.schedule = pipeline.schedule();
    shape_.stages = static_cast<int>(graph.mesh[Axis::kPp]);
    shape_.chunks = static_cast<int>(pipeline.virtual_stages());
    shape_.microbatches = static_cast<int>(graph.microbatches);
    x_.resize(shape_.chunks * shape_.microbatches);
    saved_.resize(x_.size());
    tokens_.resize(shape_.microbatches);
    head_dx_.resize(shape_.microbatches);
    shares_slots_ = graph.PoolIndex(kSharedPool) >= 0;
  }

  const StageCalls& calls() const { return calls_; }

  void Init() {
    calls_.Call("constants");
    ForEachUnit("init.");
  }

  void Publish() { ForEachUnit("publish."); }

  void Step() {
    calls_.Call("begin");
    const std::string zero = g_.zero == 1 ? "zero." : "zero_shard.";
    ForEachUnit(zero, /*skip_second_table=*/false, /*skip_sharing=*/true);
    GatherAtStart();
    for (const PipelineAction& action : PipelineOrder(shape_, calls_.stage())) {
      action.forward ? Forward(action, /*training=*/true) : Backward(action);
    }
    // Only here: what follows on the same stream of one end must not hold up the other end.
    for (size_t u = 0; u < g_.units.size(); ++u) {
      if (layout_.has_unit[u] && IsSplitTable(g_, g_.units[u])) {
        calls_.Call("finish." + g_.units[u].name);
      }
    }
    calls_.Call("sum_loss");
    ForEachUnit("norm.", /*skip_second_table=*/true);
    calls_.Call("clip");
    ForEachUnit("adamw.");
  }

  void Eval() {
    calls_.Call("begin_eval");
    GatherAtStart();
    for (const PipelineAction& action : ForwardOrder(shape_, calls_.stage())) {
      Forward(action, /*training=*/false);
    }
    calls_.Call("sum_eval_loss");
  }

 private:
  bool First(int chunk) const { return chunk == 0 && layout_.has_embedding; }
  bool Last(int chunk) const { return chunk == shape_.chunks - 1 && layout_.has_head; }

  // Calls `prefix`+unit for every unit of the stage, layer units once per layer. The copy of a tied
  // table on the last stage is the same parameter: its norm counts once.
  void ForEachUnit(const std::string& prefix, bool skip_second_table = false,
                   bool skip_sharing = false) {
    for (size_t u = 0; u < g_.units.size(); ++u) {
      const Unit& unit = g_.units[u];
      if (!layout_.has_unit[u]) continue;
      if (skip_second_table && HoldsTable(unit) && !layout_.has_embedding) continue;
      if (skip_sharing && SharesSlots(unit)) continue;
      if (!unit.per_layer) {
        BindGradient(-1);
        calls_.Call(prefix + unit.name);
        continue;
      }
      for (const auto& layers : layout_.chunk_layers) {
        for (int layer : layers) {
          BindGradient(layer);
          calls_.Call(prefix + unit.name, layer);
        }
      }
    }
  }

  // Whether the gradient takes a slot that activations were saved in.
  bool SharesSlots(const Unit& unit) const {
    return g_.unit_storage[&unit - g_.units.data()].gradient_shares_slots;
  }

  // ZeRO 1 and 2 gather all weights before the first forward pass; ZeRO 3 the units that are not
  // part of a layer.
  void GatherAtStart() {
    if (g_.zero < 3) return ForEachUnit("gather.");
    for (size_t u = 0; u < g_.units.size(); ++u) {
      if (layout_.has_unit[u] && !g_.units[u].per_layer) calls_.Call("gather." + g_.units[u].name);
    }
  }

  // A slot of each of the pools that hold what one layer saves.
  struct SavedSlots {
    int own = 0;
    int shared = 0;
  };

  // Acquires the slots and binds them.
  SavedSlots AcquireSaved() {
    SavedSlots slots;
    slots.own = calls_.Acquire(kSavedPool);
    if (shares_slots_) slots.shared = calls_.Acquire(kSharedPool);
    BindSaved(slots);
    return slots;
  }

  void BindSaved(const SavedSlots& slots) {
    calls_.Bind(kSavedPool, "", slots.own);
    if (shares_slots_) calls_.Bind(kSharedPool, "", slots.shared);
  }

  void ReleaseSaved(const SavedSlots& slots) {
    calls_.Release(kSavedPool, slots.own);
    if (shares_slots_) calls_.Release(kSharedPool, slots.shared);
  }

  // Binds the slot that the gradient of the layer took, or with -1 that of the token table, if it
  // shares slots.
  void BindGradient(int layer) {
    const auto found = gradient_slots_.find(layer);
    if (found != gradient_slots_.end()) calls_.Bind(kSharedPool, kGradientRole, found->second);
  }

  void Forward(const PipelineAction& a, bool training) {
    std::vector<int>& xs = x_[a.chunk * shape_.microbatches + a.microbatch];
    std::vector<SavedSlots>& saved = saved_[a.chunk * shape_.microbatches + a.microbatch];
    const std::vector<int>& layers = layout_.chunk_layers[a.chunk];
    // What leaves the chunk goes to the next stage, unless the head takes it here.
    const Lane leaving = Last(a.chunk) ? Lane::kStay : Lane::kSend;
    Lane lane = layers.empty() ? leaving : Lane::kStay;
    int x = calls_.Acquire("x", lane);
    calls_.Bind("x", "out", x);
    if (First(a.chunk)) {
      const int slot = calls_.Acquire("tokens");
      calls_.Bind("tokens", "", slot);
      calls_.Call("load_tokens", -1, a.microbatch);
      calls_.Call("embed_forward", -1, a.microbatch);
      tokens_[a.microbatch] = slot;
      if (!training) calls_.Release("tokens", slot);
    } else {
      calls_.Call("recv_forward", -1, a.microbatch);
    }
    for (int layer : layers) {
      lane = layer == layers.back() ? leaving : Lane::kStay;
      const int out = calls_.Acquire("x", lane);
      const SavedSlots record = AcquireSaved();
      calls_.Bind("x", "in", x);
      calls_.Bind("x", "out", out);
      calls_.Call("layer_forward", layer, a.microbatch);
      if (training) {
        xs.push_back(x);
        saved.push_back(record);
      } else {
        ReleaseSaved(record);
        calls_.Release("x", x);
      }
      x = out;
    }
    calls_.Bind("x", "in", x);
    if (Last(a.chunk)) {
      Head(a.microbatch, training);
    } else {
      calls_.Call("send_forward", -1, a.microbatch);
    }
    calls_.Release("x", x, lane);
  }

  void Head(int microbatch, bool training) {
    calls_.Call("load_targets", -1, microbatch);
    if (!training) return calls_.Call("head_eval", -1, microbatch);
    const int dx = calls_.Acquire("dx");
    head_dx_[microbatch] = dx;
    calls_.Bind("dx", "", dx);
    Accumulating("head", -1, microbatch, [&](const Unit& unit) {
      return !unit.per_layer && !HoldsPositions(unit) && (!HoldsTable(unit) || g_.dims.tied);
    });
  }

  void Backward(const PipelineAction& a) {
    std::vector<int>& xs = x_[a.chunk * shape_.microbatches + a.microbatch];
    std::vector<SavedSlots>& saved = saved_[a.chunk * shape_.microbatches + a.microbatch];
    int dx = 0;
    if (Last(a.chunk)) {
      dx = head_dx_[a.microbatch];
      calls_.Bind("dx", "", dx);
    } else {
      dx = calls_.Acquire("dx");
      calls_.Bind("dx", "", dx);
      calls_.Call("recv_backward", -1, a.microbatch);
    }
    const std::vector<int>& layers = layout_.chunk_layers[a.chunk];
    for (size_t i = layers.size(); i-- > 0;) {
      calls_.Bind("x", "in", xs[i]);
      BindSaved(saved[i]);
      if (shares_slots_) gradient_slots_[layers[i]] = calls_.Acquire(kSharedPool);
      Accumulating("layer_backward", layers[i], a.microbatch,
                   [](const Unit& unit) { return unit.per_layer; });
      ReleaseSaved(saved[i]);
      calls_.Release("x", xs[i]);
    }
    xs.clear();
    saved.clear();
    if (First(a.chunk)) {
      calls_.Bind("tokens", "", tokens_[a.microbatch]);
      const bool shares = std::any_of(g_.units.begin(), g_.units.end(), [&](const Unit& unit) {
        return HoldsTable(unit) && SharesSlots(unit);
      });
      if (shares) gradient_slots_[-1] = calls_.Acquire(kSharedPool);
      Accumulating("embed_backward", -1, a.microbatch,
                   [&](const Unit& unit) { return HoldsTable(unit) || HoldsPositions(unit); });
      calls_.Release("tokens", tokens_[a.microbatch]);
    } else {
      calls_.Call("send_backward", -1, a.microbatch);
    }
    calls_.Release("dx", dx);
  }

  // Calls a block that accumulates into the gradients of the units that `touches` names, with what
  // ZeRO asks around it: 2 and 3 reduce after every block, 1 after the last one.
  template <typename Touches>
  void Accumulating(const std::string& block, int layer, int microbatch, Touches touches) {
    std::vector<const Unit*> units;
    for (const Unit& unit : g_.units) {
      if (touches(unit)) units.push_back(&unit);
    }
    const bool passing = g_.zero >= 2;
    BindGradient(layer);
    std::vector<std::pair<std::string, int>> acquired;
    for (const Unit* unit : units) {
      // A shared slot still holds what a layer saved.
      if (!passing && SharesSlots(*unit)) calls_.Call("zero." + unit->name, layer);
      if (!passing) continue;
      const std::string pool = "gradient_full." + unit->name;
      if (unit->per_layer) {
        acquired.push_back({pool, calls_.Acquire(pool)});
        calls_.Bind(pool, "", acquired.back().second);
      }
      calls_.Call("zero." + unit->name, layer, microbatch);
    }
    calls_.Call(block, layer, microbatch);
    for (const Unit* unit : units) {
      int& count = contributions_[{unit->name, layer}];
      const bool last = ++count == Contributions(*unit);
      if (passing || last) calls_.Call("reduce." + unit->name, layer, last ? -1 : microbatch);
      if (last && !IsSplitTable(g_, *unit)) calls_.Call("finish." + unit->name, layer);
    }
    for (const auto& [pool, slot] : acquired) calls_.Release(pool, slot);
  }

  // How many blocks of a step add to the gradient of a unit on this stage.
  int Contributions(const Unit& unit) const {
    const bool twice =
        HoldsTable(unit) && g_.dims.tied && layout_.has_embedding && layout_.has_head;
    return shape_.microbatches * (twice ? 2 : 1);
  }

  const StepGraph& g_;
  const StageLayout& layout_;
  StageCalls calls_;
  PipelineShape shape_;
  std::vector<std::vector<int>> x_;             // [chunk, microbatch] -> slots of the layer inputs
  std::vector<std::vector<SavedSlots>> saved_;  // [chunk, microbatch] -> of each layer
  std::vector<int> tokens_;
  std::vector<int> head_dx_;
  std::map<std::pair<std::string, int>, int> contributions_;
  bool shares_slots_ = false;  // the graph has the shared pool
  // Layer, or -1 for the token table -> slot of the shared pool.
  std::map<int, int> gradient_slots_;
};

void Run(StageScheduler& scheduler, ProgramKind kind) {
  switch (kind) {
    case ProgramKind::kInit:
      return scheduler.Init();
    case ProgramKind::kPublish:
      return scheduler.Publish();
    case ProgramKind::kStep:
      return scheduler.Step();
    case ProgramKind::kEval:
      return scheduler.Eval();
  }
}

// Slots beyond the peak that let another stream finish with one while compute goes on.
int ExtraSlots(const StepGraph& graph, const GraphPool& pool) {
  if (pool.name == "x" || pool.name == "dx") return graph.Split(Axis::kPp) ? 1 : 0;
  return absl::StartsWith(pool.name, "gradient_full.") ? 1 : 0;
}

int GatheredSlots(const StepGraph& graph, const RankClass& c) {
  const int64_t wanted = graph.job.parallelism().prefetch() + 1;
  return static_cast<int>(std::min<int64_t>(wanted, static_cast<int64_t>(c.layers.size())));
}

// Slots of every pool of the stage, from a counting run.
LaneSlots CountSlots(const StepGraph& graph, int stage, const RankClass& c) {
  LaneSlots slots(graph.pools.size(), {0, 0});
  for (int k = 0; k < kProgramCount; ++k) {
    StageScheduler scheduler(graph, stage, {});
    Run(scheduler, static_cast<ProgramKind>(k));
    const LaneSlots peaks = scheduler.calls().Peaks();
    for (size_t p = 0; p < slots.size(); ++p) {
      for (int l = 0; l < kLaneCount; ++l) slots[p][l] = std::max(slots[p][l], peaks[p][l]);
    }
    for (const Call& call : scheduler.calls().calls()) {
      for (const GraphBinding& b : graph.blocks[call.block].bindings) {
        const GraphPool& pool = graph.pools[b.pool];
        if (pool.slots == PoolSlots::kOne) slots[b.pool][0] = 1;
        if (pool.slots == PoolSlots::kLayers) {
          slots[b.pool][0] = static_cast<int>(c.layers.size());
        }
      }
    }
  }
  // No program touches a snapshot: there is one for each shard of moments.
  for (const UnitStorage& unit : graph.unit_storage) {
    if (unit.snapshot < 0) continue;
    slots[graph.values[unit.snapshot].pool] = slots[graph.values[unit.first_moment].pool];
  }
  for (size_t p = 0; p < slots.size(); ++p) {
    const GraphPool& pool = graph.pools[p];
    if (pool.slots != PoolSlots::kDynamic) continue;
    if (absl::StartsWith(pool.name, "gathered.")) {
      slots[p][0] = GatheredSlots(graph, c);
    } else if (pool.stride == 0) {
      slots[p] = {0, 0};
    } else {
      for (int& lane : slots[p]) {
        if (lane > 0) lane += ExtraSlots(graph, pool);
      }
    }
  }
  return slots;
}

void ScheduleStage(const StepGraph& graph, int stage, RankClass& c) {
  c.stage = stage;
  for (const auto& layers : graph.stages[stage].chunk_layers) {
    c.layers.insert(c.layers.end(), layers.begin(), layers.end());
  }
  c.has_embedding = graph.stages[stage].has_embedding;
  c.has_head = graph.stages[stage].has_head;
  const LaneSlots slots = CountSlots(graph, stage, c);
  for (const auto& lanes : slots) c.pool_slots.push_back(lanes[0] + lanes[1]);
  for (int k = 0; k < kProgramCount; ++k) {
    StageScheduler scheduler(graph, stage, slots);
    Run(scheduler, static_cast<ProgramKind>(k));
    std::vector<Call> calls = scheduler.calls().calls();
    if (graph.zero == 3 && !c.layers.empty()) {
      const int window = GatheredSlots(graph, c);
      calls = InsertGathers(graph, scheduler.calls(), window - 1, window);
    }
    c.programs[k] = FoldCalls(calls);
  }
}

}  // namespace

absl::Status SchedulePrograms(const StepGraph& graph, Plan& plan) {
  plan.classes.resize(graph.stages.size());
  for (size_t s = 0; s < graph.stages.size(); ++s) {
    ScheduleStage(graph, static_cast<int>(s), plan.classes[s]);
  }
  return absl::OkStatus();
}

}  // namespace planc
