#include "compiler/graph/layout_rules.h"

#include <initializer_list>

#include "absl/strings/str_cat.h"
#include "compiler/graph/graph_text.h"
#include "schemas/status.h"

namespace planc {
namespace {

using Kind = AxisLayout::Kind;

bool IsShard(const AxisLayout& l, int dim) { return l.kind == Kind::kShard && l.dim == dim; }
bool IsReplicated(const AxisLayout& l) { return l.kind == Kind::kReplicated; }

// Everything a rule of one opcode may look at, on one mesh axis.
struct AxisView {
  const StepGraph& graph;
  const GraphNode& node;
  Axis axis;
  const AxisLayout& operator()(const char* name) const {
    const int index = OperandIndex(node.opcode, name);
    return graph.values[node.operands[index]].layout[axis];
  }
  int64_t Integer(const char* name) const { return node.integers[IntegerIndex(node.opcode, name)]; }
};

absl::Status Misfit(const AxisView& view, const std::string& why) {
  return absl::InvalidArgumentError(absl::StrCat("layout on axis ", AxisName(view.axis), ": ", why,
                                                 " in ", NodeText(view.graph, view.node)));
}

// Requires operand `name` to be one of `allowed` on this axis.
absl::Status Require(const AxisView& view, const char* name,
                     std::initializer_list<AxisLayout> allowed) {
  for (const AxisLayout& l : allowed) {
    if (view(name) == l) return absl::OkStatus();
  }
  return Misfit(view, absl::StrCat(name, " may not be ", AxisLayoutText(view(name))));
}

absl::Status RequireSame(const AxisView& view, const char* a, const char* b) {
  if (view(a) == view(b)) return absl::OkStatus();
  return Misfit(view, absl::StrCat(a, " is ", AxisLayoutText(view(a)), " but ", b, " is ",
                                   AxisLayoutText(view(b))));
}

const AxisLayout kR = AxisLayout::Replicated();
const AxisLayout kS0 = AxisLayout::Shard(0);
const AxisLayout kS1 = AxisLayout::Shard(1);
const AxisLayout kP = AxisLayout::PartialSum();

// Gradient of a parameter that every row of the sharded `rows` operand uses.
AxisLayout SumOverRows(const AxisLayout& rows) { return IsShard(rows, 0) ? kP : kR; }

// c[m,n] = op(a) op(b): contraction of a dimension that both sides shard leaves a partial sum.
absl::StatusOr<AxisLayout> MatmulRule(const AxisView& view) {
  const bool ta = view.Integer("transpose_a") != 0;
  const bool tb = view.Integer("transpose_b") != 0;
  const AxisLayout a = view("a");
  const AxisLayout b = view("b");
  const int a_rows = ta ? 1 : 0;
  const int b_columns = tb ? 0 : 1;
  if (IsReplicated(a) && IsReplicated(b)) return kR;
  if (IsShard(a, 1 - a_rows) && IsShard(b, 1 - b_columns)) return kP;
  if (IsShard(a, a_rows) && IsReplicated(b)) return kS0;
  if (IsReplicated(a) && IsShard(b, b_columns)) return kS1;
  return Misfit(view, absl::StrCat("a is ", AxisLayoutText(a), ", b is ", AxisLayoutText(b)));
}

absl::StatusOr<AxisLayout> EmbeddingRule(const AxisView& view, const std::string& output) {
  if (output == "x") {
    if (IsShard(view("table"), 0)) {
      PLANC_RETURN_IF_ERROR(Require(view, "tokens", {kR}));
      return kP;
    }
    PLANC_RETURN_IF_ERROR(Require(view, "table", {kR}));
    PLANC_RETURN_IF_ERROR(Require(view, "tokens", {kR, kS0}));
    return view("tokens");
  }
  PLANC_RETURN_IF_ERROR(Require(view, "dx", {kR, kS0}));
  PLANC_RETURN_IF_ERROR(RequireSame(view, "dx", "tokens"));
  // A rank keeps the gradient of its own rows of the table, for all tokens.
  if (IsShard(view("dtable"), 0)) {
    PLANC_RETURN_IF_ERROR(Require(view, "dx", {kR}));
    return kS0;
  }
  return SumOverRows(view("dx"));
}

absl::StatusOr<AxisLayout> NormRule(const AxisView& view, const std::string& output) {
  PLANC_RETURN_IF_ERROR(Require(view, "x", {kR, kS0}));
  PLANC_RETURN_IF_ERROR(Require(view, "w", {kR}));
  if (OperandIndex(view.node.opcode, "dy") >= 0) {
    PLANC_RETURN_IF_ERROR(RequireSame(view, "dy", "x"));
    PLANC_RETURN_IF_ERROR(RequireSame(view, "rstd", "x"));
  }
  if (output == "dw" || output == "db") return SumOverRows(view("x"));
  return view("x");
}

absl::StatusOr<AxisLayout> HeadNormRule(const AxisView& view, const std::string& output) {
  PLANC_RETURN_IF_ERROR(Require(view, "qkv", {kR, kS0, kS1}));
  PLANC_RETURN_IF_ERROR(Require(view, "wq", {kR}));
  PLANC_RETURN_IF_ERROR(Require(view, "wk", {kR}));
  if (output == "dwq" || output == "dwk") return IsReplicated(view("qkv")) ? kR : kP;
  if (output == "dqkv") PLANC_RETURN_IF_ERROR(RequireSame(view, "dqkv", "qkv"));
  return view("qkv");
}

absl::StatusOr<AxisLayout> AttentionRule(const AxisView& view) {
  // A sequence lies whole on a rank: only the data-parallel axes may shard rows.
  if (view.axis == Axis::kTp) {
    PLANC_RETURN_IF_ERROR(Require(view, "qkv", {kR, kS1}));
  } else {
    PLANC_RETURN_IF_ERROR(Require(view, "qkv", {kR, kS0}));
  }
  if (view.node.opcode == Opcode::kAttentionBackward) {
    PLANC_RETURN_IF_ERROR(RequireSame(view, "o", "qkv"));
    PLANC_RETURN_IF_ERROR(RequireSame(view, "do", "qkv"));
  }
  return view("qkv");
}

absl::StatusOr<AxisLayout> RopeRule(const AxisView& view, const char* x) {
  PLANC_RETURN_IF_ERROR(Require(view, "table", {kR}));
  if (view.axis == Axis::kTp) {
    PLANC_RETURN_IF_ERROR(Require(view, x, {kR, kS1}));
  } else {
    PLANC_RETURN_IF_ERROR(Require(view, x, {kR, kS0}));
  }
  return view(x);
}

absl::StatusOr<AxisLayout> BiasRule(const AxisView& view, const std::string& output) {
  if (output == "db") {
    PLANC_RETURN_IF_ERROR(Require(view, "dy", {kR, kS0, kS1}));
    return IsShard(view("dy"), 1) ? kS0 : SumOverRows(view("dy"));
  }
  PLANC_RETURN_IF_ERROR(Require(view, "y", {kR, kS0, kS1}));
  PLANC_RETURN_IF_ERROR(Require(view, "b", {IsShard(view("y"), 1) ? kS0 : kR}));
  return view("y");
}

absl::StatusOr<AxisLayout> LossRule(const AxisView& view, const std::string& output) {
  const bool has_logits = OperandIndex(view.node.opcode, "logits") >= 0;
  const char* rows = view.node.opcode == Opcode::kLossMax ? "logits" : "max";
  if (has_logits) PLANC_RETURN_IF_ERROR(Require(view, "logits", {kR, kS0, kS1}));
  if (view.node.opcode == Opcode::kLossMax) {
    return IsShard(view("logits"), 1) ? AxisLayout::PartialMax() : view("logits");
  }
  PLANC_RETURN_IF_ERROR(Require(view, "max", {kR, kS0}));
  PLANC_RETURN_IF_ERROR(RequireSame(view, "targets", "max"));
  if (view.node.opcode == Opcode::kLossSumExp) {
    return IsShard(view("logits"), 1) ? kP : view("max");
  }
  PLANC_RETURN_IF_ERROR(RequireSame(view, "pair", "max"));
  if (output == "logits") return view("logits");
  // Stages without the head add nothing: over pp the loss is a sum.
  return view.axis == Axis::kPp ? kP : SumOverRows(view(rows));
}

absl::StatusOr<AxisLayout> SumSquaresRule(const AxisView& view) {
  if (view.axis == Axis::kPp) return kP;
  if (view("g").kind == Kind::kShard) return kP;
  PLANC_RETURN_IF_ERROR(Require(view, "g", {kR}));
  return (view.Integer("once_axes") & AxisBit(view.axis)) != 0 ? kP : kR;
}

absl::StatusOr<AxisLayout> AdamwRule(const AxisView& view, const std::string& output) {
  PLANC_RETURN_IF_ERROR(Require(view, "coefficient", {kR}));
  PLANC_RETURN_IF_ERROR(Require(view, "g", {kR, kS0}));
  for (const char* name : {"master", "m", "v"}) PLANC_RETURN_IF_ERROR(RequireSame(view, name, "g"));
  return output == "weight" ? view("g") : view(output.c_str());
}

absl::StatusOr<AxisLayout> CollectiveRule(const AxisView& view) {
  const bool member =
      view.node.group >= 0 && (view.graph.groups[view.node.group].axes & AxisBit(view.axis)) != 0;
  if (!member) return view("x");
  switch (view.node.opcode) {
    case Opcode::kAllReduce:
      PLANC_RETURN_IF_ERROR(
          Require(view, "x", {view.Integer("maximum") != 0 ? AxisLayout::PartialMax() : kP}));
      return kR;
    case Opcode::kReduceScatter:
      PLANC_RETURN_IF_ERROR(Require(view, "x", {kP}));
      return kS0;
    default:
      PLANC_RETURN_IF_ERROR(Require(view, "x", {kS0}));
      return kR;
  }
}

absl::StatusOr<AxisLayout> ActivationRule(const AxisView& view) {
  const char* x = OperandIndex(view.node.opcode, "gate_up") >= 0 ? "gate_up" : "x";
  PLANC_RETURN_IF_ERROR(Require(view, x, {kR, kS0, kS1}));
  if (OperandIndex(view.node.opcode, "dy") >= 0) {
    PLANC_RETURN_IF_ERROR(RequireSame(view, x, "dy"));
  }
  return view(x);
}

// Linear in its operands: partial sums may be added and copied as they are.
absl::StatusOr<AxisLayout> LinearRule(const AxisView& view) {
  if (view.node.opcode == Opcode::kAdd) PLANC_RETURN_IF_ERROR(RequireSame(view, "a", "b"));
  return view("a");
}

absl::StatusOr<AxisLayout> PositionRule(const AxisView& view) {
  if (view.node.opcode == Opcode::kPositionForward) {
    PLANC_RETURN_IF_ERROR(Require(view, "table", {kR}));
    PLANC_RETURN_IF_ERROR(Require(view, "x", {kR, kS0}));
    return view("x");
  }
  PLANC_RETURN_IF_ERROR(Require(view, "dx", {kR, kS0}));
  return SumOverRows(view("dx"));
}

absl::StatusOr<AxisLayout> InferAxis(const AxisView& view, const std::string& output) {
  switch (view.node.opcode) {
    case Opcode::kEmbeddingForward:
    case Opcode::kEmbeddingBackward:
      return EmbeddingRule(view, output);
    case Opcode::kPositionForward:
    case Opcode::kPositionBackward:
      return PositionRule(view);
    case Opcode::kRmsNormForward:
    case Opcode::kRmsNormBackward:
    case Opcode::kRmsNormBackwardAdd:
    case Opcode::kLayerNormForward:
    case Opcode::kLayerNormBackward:
    case Opcode::kLayerNormBackwardAdd:
      return NormRule(view, output);
    case Opcode::kHeadNormForward:
    case Opcode::kHeadNormBackward:
      return HeadNormRule(view, output);
    case Opcode::kMatmul:
    case Opcode::kMatmulAdd:
      return MatmulRule(view);
    case Opcode::kBiasForward:
    case Opcode::kBiasBackward:
      return BiasRule(view, output);
    case Opcode::kRopeForward:
      return RopeRule(view, "qkv");
    case Opcode::kRopeBackward:
      return RopeRule(view, "dqkv");
    case Opcode::kAttentionForward:
    case Opcode::kAttentionBackward:
      return AttentionRule(view);
    case Opcode::kSwigluForward:
    case Opcode::kSwigluBackward:
    case Opcode::kGeluForward:
    case Opcode::kGeluBackward:
      return ActivationRule(view);
    case Opcode::kLossMax:
    case Opcode::kLossSumExp:
    case Opcode::kLossGradient:
    case Opcode::kLossForward:
      return LossRule(view, output);
    case Opcode::kAdd:
    case Opcode::kCast:
    case Opcode::kAccumulate:
      return LinearRule(view);
    case Opcode::kSumSquares:
      return SumSquaresRule(view);
    case Opcode::kClipCoefficient:
      PLANC_RETURN_IF_ERROR(Require(view, "sum", {kR}));
      PLANC_RETURN_IF_ERROR(Require(view, "loss", {kR}));
      return kR;
    case Opcode::kAdamw:
    case Opcode::kAdamwCast:
      return AdamwRule(view, output);
    case Opcode::kAllReduce:
    case Opcode::kReduceScatter:
    case Opcode::kAllGather:
      return CollectiveRule(view);
    case Opcode::kZero:
    case Opcode::kSend:
    case Opcode::kRecv:
    case Opcode::kLoadTokens:
    case Opcode::kLoadTargets:
    case Opcode::kInitParameters:
    case Opcode::kRopeTable:
      // The value is produced as declared, whatever the layout.
      return view.graph.values[view.node.operands[0]].layout[view.axis];
  }
  return absl::InternalError("unknown opcode");
}

}  // namespace

absl::StatusOr<Layout> InferLayout(const StepGraph& graph, const GraphNode& node, int index) {
  const std::string& output = TraitsOf(node.opcode).operands[index].name;
  Layout layout;
  for (Axis axis : kAllAxes) {
    if (!graph.Split(axis)) continue;
    PLANC_ASSIGN_OR_RETURN(layout[axis], InferAxis(AxisView{graph, node, axis}, output));
  }
  return layout;
}

absl::Status CheckLayouts(const StepGraph& graph) {
  for (const GraphBlock& block : graph.blocks) {
    for (const GraphNode& node : block.nodes) {
      const auto& operands = TraitsOf(node.opcode).operands;
      for (size_t i = 0; i < operands.size(); ++i) {
        if (operands[i].access == Access::kRead || operands[i].IsScratch()) continue;
        PLANC_ASSIGN_OR_RETURN(Layout inferred, InferLayout(graph, node, static_cast<int>(i)));
        // What one stage adds to a sum over stages is its part of that sum.
        const Layout& declared = graph.values[node.operands[i]].layout;
        if (operands[i].access == Access::kUpdate && declared[Axis::kPp].IsPartial() &&
            node.result < 0) {
          inferred[Axis::kPp] = declared[Axis::kPp];
        }
        const bool reduced_in_place = node.result >= 0 && operands[i].name == "x";
        const ValueId written = reduced_in_place ? node.result : node.operands[i];
        if (inferred == graph.values[written].layout) continue;
        return absl::InternalError(
            absl::StrCat("block ", block.name, ": ", operands[i].name, " is declared ",
                         LayoutText(graph.values[written].layout), " but is ", LayoutText(inferred),
                         " in ", NodeText(graph, node)));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace planc
