// Builds the forward blocks: embedding, one layer, and the head with its loss.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "compiler/graph/block_builder.h"
#include "compiler/passes/passes.h"
#include "schemas/status.h"
#include "schemas/workspace.h"

namespace planc {
namespace {

// Layout of everything whose rows are tokens and that no tensor-parallel axis splits.
Layout TokenLayout(const StepGraph& graph) {
  Layout layout;
  for (Axis axis : {Axis::kDpReplicate, Axis::kDpShard}) {
    if (graph.Split(axis)) layout[axis] = AxisLayout::Shard(0);
  }
  return layout;
}

int64_t GlobalTokens(const StepGraph& graph) {
  return graph.dims.tokens * graph.mesh[Axis::kDpReplicate] * graph.mesh[Axis::kDpShard];
}

ValueId AddPooled(StepGraph& graph, const std::string& name, const std::string& pool,
                  const std::string& role, DType dtype, std::vector<int64_t> shape,
                  const Layout& layout, int64_t offset = 0) {
  GraphValue v;
  v.name = name;
  v.dtype = dtype;
  v.shape = std::move(shape);
  v.layout = layout;
  v.pool = graph.PoolIndex(pool);
  v.role = role;
  v.offset = offset;
  const ValueId id = graph.AddValue(v);
  graph.named[name] = id;
  int64_t& stride = graph.pools[v.pool].stride;
  stride = std::max(stride, offset + LocalBytes(graph, id));
  return id;
}

// Pools and values that several blocks share.
void DeclareShared(StepGraph& graph) {
  const ModelDims& d = graph.dims;
  const int64_t tokens = GlobalTokens(graph);
  const Layout rows = TokenLayout(graph);
  graph.AddPool("x", MemoryKind::kActivations, PoolSlots::kDynamic);
  graph.AddPool("dx", MemoryKind::kActivations, PoolSlots::kDynamic);
  graph.AddPool(kSavedPool, MemoryKind::kActivations, PoolSlots::kDynamic);
  graph.AddPool("tokens", MemoryKind::kActivations, PoolSlots::kDynamic);
  graph.AddPool("targets", MemoryKind::kActivations, PoolSlots::kOne);
  graph.AddPool("scalars", MemoryKind::kWorkspace, PoolSlots::kOne);
  AddPooled(graph, "tokens", "tokens", "", DType::kI32, {tokens}, rows);
  AddPooled(graph, "targets", "targets", "", DType::kI32, {tokens}, rows);
  Layout residual = rows;
  if (graph.sequence_parallel) residual[Axis::kTp] = AxisLayout::Shard(0);
  for (const char* role : {"in", "out"}) {
    AddPooled(graph, absl::StrCat("x.", role), "x", role, graph.compute, {tokens, d.hidden},
              residual);
  }
  AddPooled(graph, "dx", "dx", "", graph.compute, {tokens, d.hidden}, residual);
  // Sums over the stages and the data-parallel ranks.
  Layout sum;
  for (Axis axis : {Axis::kPp, Axis::kDpReplicate, Axis::kDpShard}) {
    if (graph.Split(axis)) sum[axis] = AxisLayout::PartialSum();
  }
  AddPooled(graph, "loss", "scalars", "", DType::kF64, {1}, sum, 0);
  AddPooled(graph, "eval_loss", "scalars", "", DType::kF64, {1}, sum, kAlignment);
  if (!d.rope) return;
  graph.AddPool("constants", MemoryKind::kWeights, PoolSlots::kOne);
  AddPooled(graph, "rope_table", "constants", "", DType::kF32, {2, d.sequence, d.head_dim / 2},
            Layout());
}

// Tokens of one rank whose logits are in memory at a time: all of them, or a power of two.
int64_t LossChunk(const StepGraph& graph) {
  constexpr int64_t kMostChunks = 32;
  const ModelDims& d = graph.dims;
  // Each chunk reads the projection and reads and writes its gradient; that takes little beside the
  // products when there are enough tokens to the chunk, on accelerators more than on CPUs.
  const bool host = graph.job.cluster().device() == "host";
  const int64_t fewest = std::max<int64_t>(host ? 256 : 2048, d.tokens / kMostChunks);
  const int64_t most_logits = int64_t{host ? 4 : 128} << 20;
  const int64_t row = d.padded_vocab / graph.mesh[Axis::kTp];
  // Sums over chunks would be rounded to the gradients' type after each.
  if (graph.gradient != DType::kF32 || d.tokens * row <= most_logits) return d.tokens;
  int64_t chunk = 1;
  while (chunk < fewest || 2 * chunk * row <= most_logits) chunk *= 2;
  return std::min(chunk, d.tokens);
}

// Emits the operations of the model, one method per part.
class ForwardBuilder {
 public:
  ForwardBuilder(StepGraph& graph, const std::string& block)
      : g_(graph), d_(graph.dims), b_(&graph, block, Label::kForward) {}

  absl::Status Embedding() {
    const ValueId tokens = g_.named.at("tokens");
    const ValueId table = g_.weights.at("table");
    const ValueId out = g_.named.at("x.out");
    const std::vector<int64_t> sizes = {b_.LocalDim(tokens, 0), d_.hidden, b_.LocalDim(table, 0)};
    ValueId x = out;
    if (g_.sequence_parallel) {
      const ValueId partial = b_.Local("embedding", g_.compute, {GlobalTokens(g_), d_.hidden});
      b_.Emit(Opcode::kEmbeddingForward, {tokens, table, partial}, sizes);
      b_.ReduceScatterOverTp(partial, out);
    } else {
      // Without sequence parallelism the ranks of a tp group add up their rows in place.
      GraphValue partial = g_.values[out];
      partial.name = "x.partial";
      if (g_.Split(Axis::kTp)) partial.layout[Axis::kTp] = AxisLayout::PartialSum();
      const ValueId written = g_.Split(Axis::kTp) ? g_.AddValue(partial) : out;
      b_.Emit(Opcode::kEmbeddingForward, {tokens, table, written}, sizes);
      x = b_.ReduceOverTp(written);
    }
    if (!d_.rope) {
      const int64_t rows = b_.LocalDim(x, 0);
      const int64_t row_stride = g_.sequence_parallel ? rows : 0;
      b_.Emit(Opcode::kPositionForward, {x, g_.weights.at("position")},
              {rows, d_.hidden, d_.sequence, row_stride});
    }
    return b_.status();
  }

  absl::Status Layer() {
    const ValueId x = g_.named.at("x.in");
    const ValueId attention = Attention(Norm("norm1", x));
    const ValueId h = b_.Local("h", g_.compute, g_.values[x].shape);
    AddInto(x, attention, h);
    AddInto(h, Mlp(Norm("norm2", h)), g_.named.at("x.out"));
    return b_.status();
  }

  // Final norm, then logits and loss of one chunk of tokens after another. With `training` the
  // logits become their own gradient.
  absl::Status Head(bool training) {
    const ValueId normed = b_.GatherOverTp(Norm("final_norm", g_.named.at("x.in")));
    const ValueId targets = g_.named.at("targets");
    if (!b_.status().ok()) return b_.status();
    const int64_t chunk = LossChunk(g_);
    if (chunk >= d_.tokens) return Loss(normed, targets, training);
    const int64_t replicas = GlobalTokens(g_) / d_.tokens;
    for (int64_t first = 0; first < d_.tokens; first += chunk) {
      const int64_t rows = std::min(chunk, d_.tokens - first) * replicas;
      PLANC_RETURN_IF_ERROR(
          Loss(b_.Rows(normed, first, rows), b_.Rows(targets, first, rows), training));
    }
    return b_.status();
  }

 private:
  absl::Status Loss(ValueId normed, ValueId targets, bool training) {
    const ValueId output = g_.weights.at(d_.tied ? "table" : "output");
    const ValueId logits = b_.Matmul("logits", normed, output, false, true, g_.compute);
    if (!b_.status().ok()) return b_.status();
    const int64_t tokens = g_.values[targets].shape[0];
    const std::vector<int64_t> sizes = {b_.LocalDim(logits, 0), b_.LocalDim(logits, 1), d_.vocab};
    ValueId max = b_.Local("loss.max", DType::kF32, {tokens});
    b_.Emit(Opcode::kLossMax, {logits, max}, sizes);
    if (g_.values[max].layout[Axis::kTp].IsPartial()) max = b_.AllReduce(max, "tp", true);
    ValueId pair = b_.Local("loss.pair", DType::kF32, {tokens, 2});
    b_.Emit(Opcode::kLossSumExp, {logits, max, targets, pair}, sizes);
    pair = b_.ReduceOverTp(pair);
    // Mean over all tokens of the global batch: every rank and microbatch adds its share.
    const double scale =
        1.0 / (static_cast<double>(g_.job.batch().global()) * static_cast<double>(d_.sequence));
    if (training) {
      b_.Emit(Opcode::kLossGradient, {max, pair, targets, logits, g_.named.at("loss")}, sizes,
              {scale});
    } else {
      b_.Emit(Opcode::kLossForward, {max, pair, targets, g_.named.at("eval_loss")}, {sizes[0]},
              {scale});
    }
    return b_.status();
  }

  void AddInto(ValueId a, ValueId b, ValueId c) {
    b_.Emit(Opcode::kAdd, {a, b, c}, {LocalElements(g_, a)});
  }

  ValueId Norm(const std::string& view, ValueId x) {
    const std::vector<int64_t> shape = g_.values[x].shape;
    const std::vector<int64_t> sizes = {b_.LocalDim(x, 0), d_.hidden};
    const ValueId y = b_.Local(view, g_.compute, shape);
    const ValueId rstd = b_.Local(view + ".rstd", DType::kF32, {shape[0]});
    if (d_.layer_norm) {
      const ValueId mean = b_.Local(view + ".mean", DType::kF32, {shape[0]});
      b_.Emit(Opcode::kLayerNormForward,
              {x, g_.weights.at(view), g_.weights.at(view + "_bias"), y, mean, rstd}, sizes,
              {d_.norm_epsilon});
    } else {
      b_.Emit(Opcode::kRmsNormForward, {x, g_.weights.at(view), y, rstd}, sizes, {d_.norm_epsilon});
    }
    return y;
  }

  void Bias(ValueId y, const std::string& view) {
    if (!b_.status().ok()) return;
    b_.Emit(Opcode::kBiasForward, {y, g_.weights.at(view)}, {b_.LocalDim(y, 0), b_.LocalDim(y, 1)});
  }

  // y = x W^T for a weight split by columns of the result; `x` is gathered over the sequence first.
  ValueId ColumnParallel(const std::string& name, ValueId x, const std::string& weight,
                         const std::string& bias) {
    const ValueId y =
        b_.Matmul(name, b_.GatherOverTp(x), g_.weights.at(weight), false, true, g_.compute);
    if (!bias.empty()) Bias(y, bias);
    return y;
  }

  // y = x W^T for a weight split along the contraction: partial sums, added over tp.
  ValueId RowParallel(const std::string& name, ValueId x, const std::string& weight,
                      const std::string& bias) {
    ValueId y = b_.Matmul(name, x, g_.weights.at(weight), false, true, g_.compute);
    if (!b_.status().ok()) return y;
    y = g_.sequence_parallel ? b_.ReduceScatterOverTp(y, -1) : b_.ReduceOverTp(y);
    if (!bias.empty()) Bias(y, bias);
    return y;
  }

  ValueId Attention(ValueId x) {
    ValueId qkv = ColumnParallel("qkv", x, "qkv", d_.qkv_bias ? "qkv_bias" : "");
    if (!b_.status().ok()) return qkv;
    const int64_t tp = g_.mesh[Axis::kTp];
    const int64_t rows = b_.LocalDim(qkv, 0);
    const int64_t heads = d_.heads / tp;
    const int64_t kv_heads = d_.kv_heads / tp;
    if (d_.qk_norm) {
      const ValueId normed = b_.Local("qkv.normed", g_.compute, g_.values[qkv].shape);
      const ValueId rstd =
          b_.Local("qkv.rstd", DType::kF32, {g_.values[qkv].shape[0], d_.heads + d_.kv_heads});
      b_.Emit(Opcode::kHeadNormForward,
              {qkv, g_.weights.at("q_norm"), g_.weights.at("k_norm"), normed, rstd},
              {rows, heads, kv_heads, d_.head_dim}, {d_.norm_epsilon});
      qkv = normed;
    }
    if (d_.rope) {
      b_.Emit(Opcode::kRopeForward, {qkv, g_.named.at("rope_table")},
              {rows, d_.sequence, heads, kv_heads, d_.head_dim});
    }
    const ValueId o =
        b_.Local("attention", g_.compute, {g_.values[qkv].shape[0], d_.heads * d_.head_dim});
    // The log of the softmax sum, heads along dimension 1: [sequences, A, S].
    const ValueId lse = b_.Local("attention.lse", DType::kF32,
                                 {g_.values[qkv].shape[0] / d_.sequence, d_.heads, d_.sequence});
    b_.Emit(Opcode::kAttentionForward,
            {qkv, o, lse, b_.Workspace(AttentionWorkspaceBudget(d_.sequence, d_.head_dim))},
            {d_.micro, d_.sequence, heads, kv_heads, d_.head_dim});
    return RowParallel("attention.out", o, "o_proj", d_.linear_bias ? "o_bias" : "");
  }

  ValueId Mlp(ValueId x) {
    if (d_.gated) {
      const ValueId gate_up = ColumnParallel("gate_up", x, "gate_up", "");
      const ValueId y = b_.Local("swiglu", g_.compute, {GlobalTokens(g_), d_.ffn});
      if (!b_.status().ok()) return y;
      b_.Emit(Opcode::kSwigluForward, {gate_up, y},
              {b_.LocalDim(gate_up, 0), b_.LocalDim(gate_up, 1) / 2});
      return RowParallel("mlp.out", y, "down_proj", "");
    }
    const ValueId up = ColumnParallel("up", x, "up_proj", d_.linear_bias ? "up_bias" : "");
    const ValueId y = b_.Local("gelu", g_.compute, {GlobalTokens(g_), d_.ffn});
    if (!b_.status().ok()) return y;
    b_.Emit(Opcode::kGeluForward, {up, y}, {b_.LocalDim(up, 0), b_.LocalDim(up, 1)});
    return RowParallel("mlp.out", y, "down_proj", d_.linear_bias ? "down_bias" : "");
  }

  StepGraph& g_;
  const ModelDims& d_;
  BlockBuilder b_;
};

}  // namespace

absl::Status BuildForward(StepGraph& graph) {
  DeclareShared(graph);
  PLANC_RETURN_IF_ERROR(ForwardBuilder(graph, "embed_forward").Embedding());
  PLANC_RETURN_IF_ERROR(ForwardBuilder(graph, "layer_forward").Layer());
  PLANC_RETURN_IF_ERROR(ForwardBuilder(graph, "head").Head(/*training=*/true));
  return ForwardBuilder(graph, "head_eval").Head(/*training=*/false);
}

}  // namespace planc
