// Derives the backward blocks from the forward blocks: walks the operations in reverse and emits
// the gradient of each.
#include <map>

#include "absl/strings/str_cat.h"
#include "compiler/graph/block_builder.h"
#include "compiler/graph/graph_text.h"
#include "compiler/passes/passes.h"
#include "schemas/status.h"
#include "schemas/workspace.h"

namespace planc {
namespace {

// Gradients of one forward block, appended to `block`.
//
// The gradient of a value that is Replicated on an axis is Replicated there, of a Shard a Shard,
// and of a Partial value Replicated: a partial sum's summands all receive the gradient of the sum.
// A gradient that comes out Partial is converted where an operation needs it whole.
class BackwardBuilder {
 public:
  BackwardBuilder(StepGraph& graph, const std::string& block)
      : g_(graph), b_(&graph, block, Label::kBackward) {}

  void Seed(ValueId value, ValueId gradient) { gradient_[value] = gradient; }

  // Of the head, whose operations stay in the block: what follows the loss of a chunk of tokens is
  // its gradient, after which its logits are not needed.
  absl::Status BuildHead(const std::vector<GraphNode>& forward) {
    const int block = b_.block();
    g_.blocks[block].nodes.clear();
    std::vector<GraphNode> open;
    for (const GraphNode& node : forward) {
      g_.blocks[block].nodes.push_back(node);
      open.push_back(node);
      if (node.opcode != Opcode::kLossGradient) continue;
      for (bool product = false; !product;) {
        const GraphNode last = open.back();
        open.pop_back();
        product = last.opcode == Opcode::kMatmul;
        PLANC_RETURN_IF_ERROR(Differentiate(last));
        PLANC_RETURN_IF_ERROR(b_.status());
      }
    }
    return Build(open);
  }

  absl::Status Build(const std::vector<GraphNode>& forward) {
    for (size_t i = forward.size(); i-- > 0;) {
      PLANC_RETURN_IF_ERROR(Differentiate(forward[i]));
      PLANC_RETURN_IF_ERROR(b_.status());
    }
    return absl::OkStatus();
  }

 private:
  absl::Status Differentiate(const GraphNode& node) {
    switch (node.opcode) {
      case Opcode::kAdd:
        Give(node.operands[0], gradient_.at(node.operands[2]));
        Give(node.operands[1], gradient_.at(node.operands[2]));
        return absl::OkStatus();
      case Opcode::kAllReduce:
        if (gradient_.count(node.result) != 0) Give(node.operands[0], gradient_.at(node.result));
        return absl::OkStatus();
      case Opcode::kReduceScatter:
        Give(node.operands[0], b_.GatherOverTp(gradient_.at(node.operands[1])));
        return absl::OkStatus();
      case Opcode::kAllGather:
        Give(node.operands[0], b_.ReduceScatterOverTp(gradient_.at(node.operands[1]), -1));
        return absl::OkStatus();
      case Opcode::kMatmul:
        return Matmul(node);
      case Opcode::kBiasForward:
        return Bias(node);
      case Opcode::kRmsNormForward:
      case Opcode::kLayerNormForward:
        return Norm(node);
      case Opcode::kHeadNormForward:
        return HeadNorm(node);
      case Opcode::kRopeForward:
        b_.Emit(Opcode::kRopeBackward, {gradient_.at(node.operands[0]), node.operands[1]},
                node.integers);
        return absl::OkStatus();
      case Opcode::kAttentionForward:
        return Attention(node);
      case Opcode::kSwigluForward:
        return Activation(node, Opcode::kSwigluBackward);
      case Opcode::kGeluForward:
        return Activation(node, Opcode::kGeluBackward);
      case Opcode::kEmbeddingForward:
        return Embedding(node);
      case Opcode::kPositionForward:
        b_.Emit(Opcode::kPositionBackward,
                {gradient_.at(node.operands[0]), g_.gradients.at("position")}, node.integers);
        return absl::OkStatus();
      case Opcode::kLossGradient:
        // The forward pass left the gradient in the place of the logits.
        Give(node.operands[3], node.operands[3]);
        return absl::OkStatus();
      case Opcode::kLossMax:
      case Opcode::kLossSumExp:
        return absl::OkStatus();
      default:
        return absl::InternalError(absl::StrCat("no gradient of ", NodeText(g_, node)));
    }
  }

  // Adds `gradient` to what `value` has received so far.
  void Give(ValueId value, ValueId gradient) {
    const auto found = gradient_.find(value);
    if (found == gradient_.end()) {
      gradient_[value] = gradient;
      return;
    }
    const GraphValue& v = g_.values[gradient];
    const ValueId sum = b_.Local("d." + g_.values[value].name, v.dtype, v.shape);
    b_.Emit(Opcode::kAdd, {found->second, gradient, sum}, {LocalElements(g_, gradient)});
    found->second = sum;
  }

  // The gradient accumulator of a weight view.
  ValueId GradientOf(ValueId weight) const {
    for (const auto& [view, id] : g_.weights) {
      if (id == weight) return g_.gradients.at(view);
    }
    return -1;
  }

  const Unit& UnitOf(ValueId gradient) const {
    size_t u = 0;
    while (g_.values[g_.unit_storage[u].grad_full].pool != g_.values[gradient].pool) ++u;
    return g_.units[u];
  }

  absl::Status Matmul(const GraphNode& node) {
    const ValueId x = node.operands[0];
    const ValueId weight = node.operands[1];
    const ValueId dy = gradient_.at(node.operands[2]);
    // y = x W^T: dW += dy^T x, dx = dy W.
    const ValueId dw = GradientOf(weight);
    if (g_.values[x].first_row <= 0 && HasOneGradient(g_, UnitOf(dw))) {
      b_.Matmul("", dy, x, true, false, g_.gradient, dw);
    } else {
      b_.MatmulAdd(dy, x, true, false, dw);
    }
    const GraphValue& input = g_.values[x];
    const std::string name = "d." + input.name;
    if (input.first_row < 0) {
      Give(x, b_.Matmul(name, dy, weight, false, false, g_.compute));
    } else {
      // The products of all rows make up the gradient of the whole, in its place.
      const int64_t first_row = input.first_row;
      const int64_t rows = input.shape[0];
      const auto [whole, added] = gradient_.insert({input.alias_of, -1});
      if (added) whole->second = b_.InPlaceOf(whole->first, name);
      b_.Matmul(name, dy, weight, false, false, g_.compute,
                b_.Rows(whole->second, first_row, rows));
    }
    return b_.status();
  }

  absl::Status Bias(const GraphNode& node) {
    const ValueId dy = gradient_.at(node.operands[0]);
    const int64_t rows = b_.LocalDim(dy, 0);
    const int64_t columns = b_.LocalDim(dy, 1);
    b_.Emit(Opcode::kBiasBackward,
            {dy, GradientOf(node.operands[1]), b_.Workspace(RowSumWorkspaceBudget(rows, columns))},
            {rows, columns});
    return b_.status();
  }

  absl::Status Norm(const GraphNode& node) {
    const bool layer_norm = node.opcode == Opcode::kLayerNormForward;
    const ValueId x = node.operands[0];
    const ValueId y = node.operands[layer_norm ? 3 : 2];
    const ValueId dy = b_.ReduceOverTp(gradient_.at(y));
    if (!b_.status().ok()) return b_.status();
    // The residual stream's gradient is already there when the norm is reached: add to it in place.
    const auto found = gradient_.find(x);
    const bool add = found != gradient_.end();
    const ValueId dx = add ? found->second : g_.named.at("dx");
    gradient_[x] = dx;
    const ValueId workspace = b_.Workspace(
        (layer_norm ? 2 : 1) * RowSumWorkspaceBudget(node.integers[0], node.integers[1]));
    if (layer_norm) {
      b_.Emit(add ? Opcode::kLayerNormBackwardAdd : Opcode::kLayerNormBackward,
              {dy, x, node.operands[1], node.operands[4], node.operands[5], dx,
               GradientOf(node.operands[1]), GradientOf(node.operands[2]), workspace},
              node.integers);
    } else {
      b_.Emit(
          add ? Opcode::kRmsNormBackwardAdd : Opcode::kRmsNormBackward,
          {dy, x, node.operands[1], node.operands[3], dx, GradientOf(node.operands[1]), workspace},
          node.integers);
    }
    return b_.status();
  }

  absl::Status HeadNorm(const GraphNode& node) {
    const ValueId gradient = gradient_.at(node.operands[3]);
    const ValueId workspace =
        b_.Workspace(RowSumWorkspaceBudget(node.integers[0], node.integers[3]));
    b_.Emit(Opcode::kHeadNormBackward,
            {gradient, node.operands[0], node.operands[1], node.operands[2], node.operands[4],
             g_.gradients.at("q_norm"), g_.gradients.at("k_norm"), workspace},
            node.integers);
    Give(node.operands[0], gradient);
    return b_.status();
  }

  absl::Status Attention(const GraphNode& node) {
    const ValueId qkv = node.operands[0];
    const ValueId dqkv = b_.Local("d.qkv", g_.compute, g_.values[qkv].shape);
    const int64_t budget = AttentionWorkspaceBudget(node.integers[1], node.integers[4]);
    b_.Emit(Opcode::kAttentionBackward,
            {qkv, node.operands[1], node.operands[2], gradient_.at(node.operands[1]), dqkv,
             b_.Workspace(budget)},
            node.integers);
    Give(qkv, dqkv);
    return b_.status();
  }

  absl::Status Activation(const GraphNode& node, Opcode backward) {
    // The gradient takes the place of x, which nothing reads after this.
    const ValueId x = node.operands[0];
    const ValueId dx = b_.InPlaceOf(x, "d." + g_.values[x].name);
    b_.Emit(backward, {x, gradient_.at(node.operands[1]), dx}, node.integers);
    Give(x, dx);
    return b_.status();
  }

  absl::Status Embedding(const GraphNode& node) {
    b_.Emit(Opcode::kEmbeddingBackward,
            {node.operands[0], gradient_.at(node.operands[2]), g_.gradients.at("table")},
            node.integers);
    return b_.status();
  }

  StepGraph& g_;
  BlockBuilder b_;
  std::map<ValueId, ValueId> gradient_;
};

// Seeds every value of the block that is the finished residual stream leaving it.
void SeedOutputs(const StepGraph& graph, const std::vector<GraphNode>& nodes,
                 BackwardBuilder& builder) {
  const GraphValue& out = graph.values[graph.named.at("x.out")];
  const auto seed = [&](ValueId id) {
    if (id < 0) return;
    const GraphValue& v = graph.values[id];
    if (v.pool == out.pool && v.role == out.role && v.layout == out.layout) {
      builder.Seed(id, graph.named.at("dx"));
    }
  };
  for (const GraphNode& node : nodes) {
    for (ValueId id : node.operands) seed(id);
    seed(node.result);
  }
}

}  // namespace

absl::Status BuildBackward(StepGraph& graph) {
  for (const auto& [from, to] :
       {std::pair<std::string, std::string>{"layer_forward", "layer_backward"},
        {"embed_forward", "embed_backward"}}) {
    const std::vector<GraphNode> forward = graph.blocks[graph.BlockIndex(from)].nodes;
    BackwardBuilder builder(graph, to);
    SeedOutputs(graph, forward, builder);
    PLANC_RETURN_IF_ERROR(builder.Build(forward));
  }
  const std::vector<GraphNode> head = graph.blocks[graph.BlockIndex("head")].nodes;
  return BackwardBuilder(graph, "head").BuildHead(head);
}

}  // namespace planc
