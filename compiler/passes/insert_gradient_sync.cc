// Reduces gradients: over dp_shard into the own shard (per step with ZeRO 1, per microbatch with 2
// and 3), then over dp_replicate, over tp where ranks hold parts, and between the copies of a tied
// table.
#include "absl/strings/str_cat.h"
#include "compiler/graph/block_builder.h"
#include "compiler/passes/passes.h"
#include "schemas/collective.h"
#include "schemas/status.h"

namespace planc {
namespace {

// The copies on both pipeline ends each receive a part of the gradient of a split table.
void MarkPartialOverPipeline(StepGraph& graph, const UnitStorage& storage) {
  std::vector<ValueId> ids = {storage.grad_full, storage.grad_partial, storage.grad_shard,
                              graph.gradients.at("table")};
  for (ValueId id : ids) {
    if (id >= 0) graph.values[id].layout[Axis::kPp] = AxisLayout::PartialSum();
  }
}

// The own shard of the sum over dp_shard.
absl::Status Reduce(StepGraph& graph, const Unit& unit, UnitStorage& storage) {
  if (!graph.Split(Axis::kDpShard)) return absl::OkStatus();
  BlockBuilder b(&graph, "reduce." + unit.name, Label::kGradientSync);
  b.set_stream(Stream::kData);
  const int64_t shards = graph.mesh[Axis::kDpShard];
  const int64_t count = unit.elements / shards;
  const ValueId into = storage.grad_partial >= 0 ? storage.grad_partial : storage.grad_shard;
  const int64_t scratch = ReduceScatterScratchBytes(count, shards, SizeOf(graph.gradient));
  b.Emit(Opcode::kReduceScatter, {storage.grad_full, into, b.Workspace(scratch)}, {count}, {},
         "dp_shard");
  if (storage.grad_partial >= 0) {
    b.Emit(Opcode::kAccumulate, {storage.grad_partial, storage.grad_shard}, {count});
  }
  return b.status();
}

// The sums that remain once all microbatches are in; leaves the finished gradient in grad_shard.
absl::Status Finish(StepGraph& graph, const Unit& unit, UnitStorage& storage) {
  const Layout& layout = graph.values[storage.grad_shard].layout;
  const bool replicate = layout[Axis::kDpReplicate].IsPartial();
  const bool tp = layout[Axis::kTp].IsPartial();
  const bool pipeline = layout[Axis::kPp].IsPartial();
  if (!replicate && !tp && !pipeline) return absl::OkStatus();
  BlockBuilder b(&graph, "finish." + unit.name, Label::kGradientSync);
  b.set_stream(Stream::kData);
  ValueId shard = storage.grad_shard;
  if (replicate) shard = b.AllReduce(shard, "dp_replicate");
  if (tp) shard = b.AllReduce(shard, "tp");
  if (pipeline) shard = b.AllReduce(shard, "embedding");
  storage.grad_shard = shard;
  return b.status();
}

}  // namespace

absl::Status InsertGradientSync(StepGraph& graph) {
  for (size_t u = 0; u < graph.units.size(); ++u) {
    const Unit& unit = graph.units[u];
    UnitStorage& storage = graph.unit_storage[u];
    if (IsSplitTable(graph, unit)) MarkPartialOverPipeline(graph, storage);
    PLANC_RETURN_IF_ERROR(Reduce(graph, unit, storage));
    PLANC_RETURN_IF_ERROR(Finish(graph, unit, storage));
  }
  return absl::OkStatus();
}

}  // namespace planc
