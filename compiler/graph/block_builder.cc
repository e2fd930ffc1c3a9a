#include "compiler/graph/block_builder.h"

#include "absl/strings/str_cat.h"
#include "compiler/graph/layout_rules.h"
#include "schemas/collective.h"
#include "schemas/status.h"
#include "schemas/workspace.h"

namespace planc {

BlockBuilder::BlockBuilder(StepGraph* graph, const std::string& block, Label label)
    : graph_(graph), block_(graph->BlockIndex(block)), label_(label) {
  if (block_ < 0) block_ = graph->AddBlock(block);
}

ValueId BlockBuilder::Local(const std::string& name, DType dtype, std::vector<int64_t> shape) {
  GraphValue value;
  value.name = name;
  value.dtype = dtype;
  value.shape = std::move(shape);
  const ValueId id = graph_->AddValue(value);
  unknown_.insert(id);
  return id;
}

void BlockBuilder::Emit(Opcode opcode, std::vector<ValueId> operands, std::vector<int64_t> integers,
                        std::vector<double> reals, const std::string& group) {
  if (!status_.ok()) return;
  GraphNode node;
  node.opcode = opcode;
  node.operands = std::move(operands);
  node.integers = std::move(integers);
  node.reals = std::move(reals);
  node.label = label_;
  node.stream = stream_;
  if (!group.empty()) {
    node.group = graph_->GroupIndex(group);
    if (node.group < 0) {
      status_ = absl::InternalError(absl::StrCat("no group named ", group));
      return;
    }
  }
  const OpcodeTraits& traits = TraitsOf(opcode);
  if (node.operands.size() != traits.operands.size() ||
      node.integers.size() != traits.integers.size() || node.reals.size() != traits.reals.size()) {
    status_ = absl::InternalError(absl::StrCat("wrong number of operands for ", traits.text));
    return;
  }
  for (size_t i = 0; i < node.operands.size(); ++i) {
    const OperandTraits& operand = traits.operands[i];
    if (operand.access == Access::kRead || operand.IsScratch()) continue;
    absl::StatusOr<Layout> layout = InferLayout(*graph_, node, static_cast<int>(i));
    if (!layout.ok()) {
      status_ = WithContext(layout.status(), graph_->blocks[block_].name);
      return;
    }
    SetLayout(node.operands[i], *layout);
  }
  graph_->blocks[block_].nodes.push_back(std::move(node));
}

// Sets the layout of a value that has none yet, and of the value whose rows it is.
void BlockBuilder::SetLayout(ValueId id, const Layout& layout) {
  if (unknown_.erase(id) == 0) return;
  graph_->values[id].layout = layout;
  if (graph_->values[id].first_row >= 0) SetLayout(graph_->values[id].alias_of, layout);
}

ValueId BlockBuilder::InPlaceOf(ValueId x, const std::string& name) {
  GraphValue value = graph_->values[x];
  value.name = name;
  value.alias_of = x;
  value.offset = -1;
  value.layout = Layout();
  const ValueId id = graph_->AddValue(value);
  unknown_.insert(id);
  return id;
}

ValueId BlockBuilder::Rows(ValueId x, int64_t first_row, int64_t rows) {
  GraphValue part = graph_->values[x];
  part.alias_of = x;
  part.first_row = first_row;
  part.offset = -1;
  part.shape[0] = rows;
  const ValueId id = graph_->AddValue(part);
  if (unknown_.count(x) != 0) unknown_.insert(id);
  return id;
}

ValueId BlockBuilder::Workspace(int64_t bytes) {
  GraphValue value;
  value.name = "workspace";
  value.dtype = DType::kU8;
  value.shape = {bytes};
  return graph_->AddValue(value);
}

int64_t BlockBuilder::LocalDim(ValueId id, int dim) const {
  const GraphValue& value = graph_->values[id];
  return LocalShape(graph_->mesh, value.shape, value.layout)[dim];
}

ValueId BlockBuilder::AllReduce(ValueId x, const std::string& group, bool maximum) {
  if (!status_.ok()) return x;
  const int index = graph_->GroupIndex(group);
  const GroupKind& kind = graph_->groups[index];
  GraphValue after = graph_->values[x];
  after.alias_of = x;
  after.offset = -1;
  for (Axis axis : kAllAxes) {
    if ((kind.axes & AxisBit(axis)) != 0) after.layout[axis] = AxisLayout::Replicated();
  }
  const int64_t count = LocalElements(*graph_, x);
  const int64_t scratch =
      AllReduceScratchBytes(count, GroupSize(graph_->mesh, kind), SizeOf(after.dtype));
  const ValueId result = graph_->AddValue(after);
  Emit(Opcode::kAllReduce, {x, Workspace(scratch)}, {count, maximum ? 1 : 0}, {}, group);
  if (status_.ok()) graph_->blocks[block_].nodes.back().result = result;
  return result;
}

ValueId BlockBuilder::ReduceOverTp(ValueId x) {
  if (!graph_->values[x].layout[Axis::kTp].IsPartial()) return x;
  return AllReduce(x, "tp");
}

ValueId BlockBuilder::ReduceScatterOverTp(ValueId x, ValueId y) {
  const GraphValue& value = graph_->values[x];
  if (y < 0) y = Local(value.name + ".scattered", value.dtype, value.shape);
  const int64_t members = graph_->mesh[Axis::kTp];
  const int64_t count = LocalElements(*graph_, x) / members;
  const int64_t scratch =
      ReduceScatterScratchBytes(count, members, SizeOf(graph_->values[x].dtype));
  Emit(Opcode::kReduceScatter, {x, y, Workspace(scratch)}, {count}, {}, "tp");
  return y;
}

ValueId BlockBuilder::GatherOverTp(ValueId x) {
  const GraphValue value = graph_->values[x];
  if (value.layout[Axis::kTp] != AxisLayout::Shard(0)) return x;
  const ValueId y = Local(value.name + ".gathered", value.dtype, value.shape);
  Emit(Opcode::kAllGather, {x, y}, {LocalElements(*graph_, x)}, {}, "tp");
  return y;
}

std::vector<int64_t> BlockBuilder::MatmulSizes(ValueId a, ValueId b, bool ta, bool tb) const {
  const int64_t m = LocalDim(a, ta ? 1 : 0);
  const int64_t k = LocalDim(a, ta ? 0 : 1);
  const int64_t n = LocalDim(b, tb ? 0 : 1);
  return {m, n, k, ta ? 1 : 0, tb ? 1 : 0};
}

ValueId BlockBuilder::Matmul(const std::string& name, ValueId a, ValueId b, bool transpose_a,
                             bool transpose_b, DType dtype, ValueId into) {
  if (!status_.ok()) return into < 0 ? a : into;
  if (into < 0) {
    const int64_t rows = graph_->values[a].shape[transpose_a ? 1 : 0];
    const int64_t columns = graph_->values[b].shape[transpose_b ? 0 : 1];
    into = Local(name, dtype, {rows, columns});
  }
  const std::vector<int64_t> sizes = MatmulSizes(a, b, transpose_a, transpose_b);
  Emit(Opcode::kMatmul,
       {a, b, into, Workspace(MatmulWorkspaceBudget(sizes[0], sizes[1], sizes[2]))}, sizes);
  return into;
}

void BlockBuilder::MatmulAdd(ValueId a, ValueId b, bool transpose_a, bool transpose_b, ValueId c) {
  if (!status_.ok()) return;
  const std::vector<int64_t> sizes = MatmulSizes(a, b, transpose_a, transpose_b);
  Emit(Opcode::kMatmulAdd,
       {a, b, c, Workspace(MatmulWorkspaceBudget(sizes[0], sizes[1], sizes[2]))}, sizes);
}

absl::Status EmitOne(StepGraph& graph, const std::string& block, Label label, Stream stream,
                     Opcode opcode, std::vector<ValueId> operands, std::vector<int64_t> integers,
                     std::vector<double> reals, const std::string& group) {
  BlockBuilder b(&graph, block, label);
  b.set_stream(stream);
  b.Emit(opcode, std::move(operands), std::move(integers), std::move(reals), group);
  return b.status();
}

}  // namespace planc
