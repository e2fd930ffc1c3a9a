// Blocks around the microbatches: initial values, weight gathers, zeroed gradients, the global
// gradient norm, and AdamW on the own shard of every unit.
#include "absl/strings/str_cat.h"
#include "compiler/graph/block_builder.h"
#include "compiler/passes/passes.h"
#include "schemas/status.h"

namespace planc {
namespace {

ValueId AddScalar(StepGraph& graph, const std::string& name, DType dtype, const Layout& layout) {
  GraphPool& pool = graph.pools[graph.PoolIndex("scalars")];
  GraphValue v;
  v.name = name;
  v.dtype = dtype;
  v.shape = {1};
  v.layout = layout;
  v.pool = graph.PoolIndex("scalars");
  v.offset = (pool.stride + kAlignment - 1) / kAlignment * kAlignment;
  pool.stride = v.offset + SizeOf(dtype);
  return graph.named[name] = graph.AddValue(v);
}

absl::Status EmitOnCompute(StepGraph& graph, const std::string& block, Label label, Opcode opcode,
                           std::vector<ValueId> operands, std::vector<int64_t> integers,
                           std::vector<double> reals = {}) {
  return EmitOne(graph, block, label, Stream::kCompute, opcode, std::move(operands),
                 std::move(integers), std::move(reals));
}

// Zeroes what operations add to: all of the unit's gradient, or what follows its matrices.
absl::Status ZeroGradient(StepGraph& graph, int index) {
  const Unit& unit = graph.units[index];
  ValueId gradient = graph.unit_storage[index].grad_full;
  if (HasOneGradient(graph, unit)) {
    if (unit.decay_elements == unit.elements) return absl::OkStatus();
    GraphValue rest = graph.values[gradient];
    rest.shape[0] = rest.shape[0] / unit.elements * (unit.elements - unit.decay_elements);
    rest.offset += unit.decay_elements * SizeOf(rest.dtype);
    gradient = graph.AddValue(rest);
  }
  return EmitOnCompute(graph, "zero." + unit.name, Label::kBackward, Opcode::kZero, {gradient}, {});
}

// Blocks of one unit outside the microbatches.
absl::Status UnitBlocks(StepGraph& graph, int index) {
  const Unit& unit = graph.units[index];
  const UnitStorage& s = graph.unit_storage[index];
  const int64_t count = unit.elements / graph.mesh[Axis::kDpShard];
  PLANC_RETURN_IF_ERROR(EmitOnCompute(graph, "init." + unit.name, Label::kInit,
                                      Opcode::kInitParameters, {s.master}, {index}));
  if (s.weight_shard != s.master) {
    PLANC_RETURN_IF_ERROR(EmitOnCompute(graph, "publish." + unit.name, Label::kInit, Opcode::kCast,
                                        {s.master, s.weight_shard}, {count}));
  }
  if (graph.Split(Axis::kDpShard)) {
    PLANC_RETURN_IF_ERROR(EmitOne(graph, "gather." + unit.name, Label::kParameterGather,
                                  Stream::kData, Opcode::kAllGather,
                                  {s.weight_shard, s.weight_full}, {count}, {}, "dp_shard"));
  }
  PLANC_RETURN_IF_ERROR(ZeroGradient(graph, index));
  if (s.grad_partial >= 0) {
    // The accumulator itself: the finished gradient seen before its last reductions.
    PLANC_RETURN_IF_ERROR(EmitOnCompute(graph, "zero_shard." + unit.name, Label::kBackward,
                                        Opcode::kZero, {StorageRoot(graph, s.grad_shard)}, {}));
  }
  const bool once = !unit.tp_sharded && graph.Split(Axis::kTp);
  PLANC_RETURN_IF_ERROR(EmitOnCompute(
      graph, "norm." + unit.name, Label::kOptimizer, Opcode::kSumSquares,
      {s.grad_shard, graph.named.at("norm_sum")}, {count, once ? AxisBit(Axis::kTp) : 0}));
  std::vector<ValueId> operands = {s.grad_shard, graph.named.at("coefficient"), s.master,
                                   s.first_moment, s.second_moment};
  const bool cast = s.weight_shard != s.master;
  if (cast) operands.push_back(s.weight_shard);
  return EmitOnCompute(graph, "adamw." + unit.name, Label::kOptimizer,
                       cast ? Opcode::kAdamwCast : Opcode::kAdamw, operands,
                       {count, unit.decay_elements});
}

absl::Status ReduceScalar(StepGraph& graph, const std::string& block, const std::string& name,
                          const std::string& group) {
  if (graph.GroupIndex(group) < 0) return absl::OkStatus();
  BlockBuilder b(&graph, block, Label::kOptimizer);
  graph.named[name] = b.AllReduce(graph.named.at(name), group);
  return b.status();
}

}  // namespace

absl::Status InsertOptimizer(StepGraph& graph) {
  Layout partial;
  for (Axis axis : {Axis::kPp, Axis::kDpShard, Axis::kTp}) {
    if (graph.Split(axis)) partial[axis] = AxisLayout::PartialSum();
  }
  AddScalar(graph, "norm_sum", DType::kF64, partial);
  AddScalar(graph, "coefficient", DType::kF32, Layout());
  AddScalar(graph, "grad_norm", DType::kF32, Layout());
  for (const char* name : {"loss", "norm_sum"}) {
    PLANC_RETURN_IF_ERROR(
        EmitOnCompute(graph, "begin", Label::kForward, Opcode::kZero, {graph.named.at(name)}, {}));
  }
  PLANC_RETURN_IF_ERROR(EmitOnCompute(graph, "begin_eval", Label::kForward, Opcode::kZero,
                                      {graph.named.at("eval_loss")}, {}));
  if (graph.dims.rope) {
    PLANC_RETURN_IF_ERROR(EmitOnCompute(
        graph, "constants", Label::kInit, Opcode::kRopeTable, {graph.named.at("rope_table")},
        {graph.dims.sequence, graph.dims.head_dim}, {graph.dims.rope_theta}));
  }
  for (size_t u = 0; u < graph.units.size(); ++u) {
    PLANC_RETURN_IF_ERROR(UnitBlocks(graph, static_cast<int>(u)));
  }
  PLANC_RETURN_IF_ERROR(ReduceScalar(graph, "sum_loss", "loss", "loss"));
  PLANC_RETURN_IF_ERROR(ReduceScalar(graph, "clip", "norm_sum", "norm"));
  PLANC_RETURN_IF_ERROR(EmitOnCompute(graph, "clip", Label::kOptimizer, Opcode::kClipCoefficient,
                                      {graph.named.at("norm_sum"), graph.named.at("loss"),
                                       graph.named.at("coefficient"), graph.named.at("grad_norm")},
                                      {}, {graph.job.optimizer().clip_norm()}));
  return ReduceScalar(graph, "sum_eval_loss", "eval_loss", "loss");
}

}  // namespace planc
