// Decides where weights, gradients and optimizer state of each unit live (ZeRO stages 1 to 3:
// Rajbhandari et al., arXiv 1910.02054), and declares a typed view of every parameter for the
// blocks that read it.
#include "absl/strings/str_cat.h"
#include "compiler/passes/passes.h"

namespace planc {
namespace {

// Declares the flat tensors of one unit.
class UnitPlacer {
 public:
  UnitPlacer(StepGraph& graph, int index)
      : g_(graph),
        unit_(graph.units[index]),
        storage_(graph.unit_storage[index]),
        shards_(graph.mesh[Axis::kDpShard]) {}

  void Place() {
    PlaceWeights();
    PlaceOptimizer();
    PlaceGradients();
    if (g_.job.checkpoint().async()) PlaceSnapshot();
  }

 private:
  PoolSlots PerLayer() const { return unit_.per_layer ? PoolSlots::kLayers : PoolSlots::kOne; }
  // Buffers that hold one layer at a time while it is worked on.
  PoolSlots Passing() const { return unit_.per_layer ? PoolSlots::kDynamic : PoolSlots::kOne; }

  int Pool(const std::string& prefix, MemoryKind kind, PoolSlots slots) {
    return g_.AddPool(absl::StrCat(prefix, ".", unit_.name), kind, slots);
  }

  // A flat tensor of the unit, whole or one dp_shard shard of it.
  GraphValue Flat(const std::string& prefix, DType dtype, bool shard, int pool,
                  int64_t offset = 0) {
    GraphValue v;
    v.name = absl::StrCat(prefix, ".", unit_.name);
    v.dtype = dtype;
    v.shape = {unit_.elements * (unit_.tp_sharded ? g_.mesh[Axis::kTp] : 1)};
    if (unit_.tp_sharded) v.layout[Axis::kTp] = AxisLayout::Shard(0);
    if (shard && shards_ > 1) v.layout[Axis::kDpShard] = AxisLayout::Shard(0);
    v.pool = pool;
    v.offset = offset;
    const int64_t bytes = unit_.elements / (shard ? shards_ : 1) * SizeOf(dtype);
    g_.pools[pool].stride = std::max(g_.pools[pool].stride, offset + bytes);
    return v;
  }

  // The own shard inside the whole tensor `full`.
  ValueId ShardInside(ValueId full, const std::string& prefix) {
    if (shards_ == 1) return full;
    GraphValue v = Flat(prefix, g_.values[full].dtype, true, g_.values[full].pool);
    v.layout = g_.values[full].layout;
    v.layout[Axis::kDpShard] = AxisLayout::Shard(0);
    v.shard_stride = unit_.elements / shards_ * SizeOf(v.dtype);
    return g_.AddValue(v);
  }

  void PlaceWeights() {
    const bool gathered = g_.zero == 3;
    const int pool = gathered ? Pool("gathered", MemoryKind::kCommunication, Passing())
                              : Pool("weights", MemoryKind::kWeights, PerLayer());
    storage_.weight_full = g_.AddValue(Flat("weights", g_.compute, false, pool));
    if (!gathered) {
      storage_.weight_shard = ShardInside(storage_.weight_full, "weight_shard");
    } else if (g_.compute != DType::kF32) {
      const int shard_pool = Pool("weight_shard", MemoryKind::kWeights, PerLayer());
      storage_.weight_shard = g_.AddValue(Flat("weight_shard", g_.compute, true, shard_pool));
    }
  }

  void PlaceOptimizer() {
    if (g_.compute == DType::kF32 && g_.zero < 3) {
      // The fp32 compute weights are the master weights.
      storage_.master = storage_.weight_shard;
    } else {
      const MemoryKind kind =
          g_.compute == DType::kF32 ? MemoryKind::kWeights : MemoryKind::kOptimizer;
      const int pool = Pool("master", kind, PerLayer());
      storage_.master = g_.AddValue(Flat("master", DType::kF32, true, pool));
      if (g_.compute == DType::kF32) storage_.weight_shard = storage_.master;
    }
    const int pool = Pool("adam", MemoryKind::kOptimizer, PerLayer());
    const int64_t bytes = unit_.elements / shards_ * SizeOf(DType::kF32);
    storage_.first_moment = g_.AddValue(Flat("exp_avg", DType::kF32, true, pool));
    storage_.second_moment = g_.AddValue(Flat("exp_avg_sq", DType::kF32, true, pool, bytes));
  }

  void PlaceSnapshot() {
    constexpr int64_t kParts = 3;  // master, first and second moment
    const int pool = Pool("snapshot", MemoryKind::kHostPinned, PerLayer());
    GraphValue v = Flat("snapshot", DType::kF32, true, pool);
    v.shape[0] *= kParts;
    g_.pools[pool].stride *= kParts;
    storage_.snapshot = g_.AddValue(v);
  }

  void PlaceGradients() {
    const bool passing = g_.zero >= 2;
    const int pool = passing ? Pool("gradient_full", MemoryKind::kCommunication, Passing())
                             : Pool("gradients", MemoryKind::kGradients, PerLayer());
    GraphValue full = Flat("gradients", g_.gradient, false, pool);
    for (Axis axis : {Axis::kDpReplicate, Axis::kDpShard}) {
      if (g_.Split(axis)) full.layout[axis] = AxisLayout::PartialSum();
    }
    if (storage_.gradient_partial_on_tp) full.layout[Axis::kTp] = AxisLayout::PartialSum();
    storage_.grad_full = g_.AddValue(full);
    if (!passing) {
      storage_.grad_shard = ShardInside(storage_.grad_full, "gradient_shard");
      return;
    }
    const int shard_pool = Pool("gradients", MemoryKind::kGradients, PerLayer());
    GraphValue shard = Flat("gradient_shard", g_.gradient, true, shard_pool);
    shard.layout = full.layout;
    shard.layout[Axis::kDpShard] = AxisLayout::Shard(0);
    storage_.grad_shard = g_.AddValue(shard);
    // The table has two contributions a microbatch where embedding and head share it.
    const bool twice = HoldsTable(unit_) && g_.dims.tied && !IsSplitTable(g_, unit_);
    if (g_.microbatches == 1 && !twice) return;
    const int part_pool = Pool("gradient_part", MemoryKind::kCommunication, PoolSlots::kOne);
    shard.name = absl::StrCat("gradient_part.", unit_.name);
    shard.pool = part_pool;
    g_.pools[part_pool].stride = unit_.elements / shards_ * SizeOf(g_.gradient);
    storage_.grad_partial = g_.AddValue(shard);
  }

  StepGraph& g_;
  const Unit& unit_;
  UnitStorage& storage_;
  int64_t shards_;
};

// Declares weight and gradient of the parameters first..last, which lie one after another, as one
// tensor stacked along dimension 0.
void AddView(StepGraph& graph, const std::string& view, int first, int last) {
  const Parameter& p = graph.params[first];
  const UnitStorage& storage = graph.unit_storage[p.unit];
  std::vector<int64_t> shape = p.local_shape;
  for (int i = first + 1; i <= last; ++i) shape[0] += graph.params[i].local_shape[0];
  for (const bool gradient : {false, true}) {
    const GraphValue& flat = graph.values[gradient ? storage.grad_full : storage.weight_full];
    GraphValue v;
    v.name = (gradient ? "d." : "w.") + view;
    v.dtype = flat.dtype;
    v.shape = shape;
    v.layout = flat.layout;
    if (p.tp_dim >= 0) {
      v.shape[p.tp_dim] *= graph.mesh[Axis::kTp];
      v.layout[Axis::kTp] = AxisLayout::Shard(p.tp_dim);
    }
    v.pool = flat.pool;
    v.offset = flat.offset + p.unit_offset * SizeOf(flat.dtype);
    (gradient ? graph.gradients : graph.weights)[view] = graph.AddValue(v);
  }
}

int ParameterByView(const StepGraph& graph, const std::string& view) {
  for (size_t i = 0; i < graph.param_views.size(); ++i) {
    if (graph.param_views[i] == view) return static_cast<int>(i);
  }
  return -1;
}

}  // namespace

absl::Status PlaceParameters(StepGraph& graph) {
  for (size_t u = 0; u < graph.units.size(); ++u) UnitPlacer(graph, static_cast<int>(u)).Place();
  for (size_t i = 0; i < graph.params.size(); ++i) {
    AddView(graph, graph.param_views[i], static_cast<int>(i), static_cast<int>(i));
  }
  const auto fuse = [&](const std::string& view, const std::string& first,
                        const std::string& last) {
    const int begin = ParameterByView(graph, first);
    if (begin >= 0) AddView(graph, view, begin, ParameterByView(graph, last));
  };
  fuse("qkv", "q_proj", "v_proj");
  fuse("qkv_bias", "q_bias", "v_bias");
  fuse("gate_up", "gate_proj", "up_proj");
  return absl::OkStatus();
}

}  // namespace planc
