// Symbolic execution of the backward pass: each operation must get the complete gradient of its
// forward operation's result and the values that operation used.
#include "absl/strings/str_cat.h"
#include "schemas/verify_execute.h"

namespace planc::verifying {

void Executor::Backward(const Site& site) {
  switch (site.instruction->opcode) {
    case Opcode::kMatmul:
    case Opcode::kMatmulAdd:
      return MatmulOf(site);
    case Opcode::kRmsNormBackward:
    case Opcode::kRmsNormBackwardAdd:
    case Opcode::kLayerNormBackward:
    case Opcode::kLayerNormBackwardAdd:
      return NormBackward(site);
    case Opcode::kHeadNormBackward:
      return HeadNormBackward(site);
    case Opcode::kBiasBackward:
      return BiasBackward(site);
    case Opcode::kEmbeddingBackward:
    case Opcode::kPositionBackward:
      return EmbeddingBackward(site);
    case Opcode::kRopeBackward:
      return RopeBackward(site);
    case Opcode::kAttentionBackward:
      return AttentionBackward(site);
    case Opcode::kSwigluBackward:
    case Opcode::kGeluBackward:
      return ActivationBackward(site);
    case Opcode::kAdd:
      return AddOf(site);
    default:
      Bad(site, "structure", "has no rule");
  }
}

// Products of the forward pass, gradients of their inputs, and gradients of their weights.
void Executor::MatmulOf(const Site& site) {
  const bool adds = site.instruction->opcode == Opcode::kMatmulAdd;
  const bool a_weight = ValueOf(site, 0).kind == ValueKind::kParameter;
  const bool b_weight = ValueOf(site, 1).kind == ValueKind::kParameter;
  Value a, b;
  if (!a_weight && !b_weight) {
    if (ReadTensor(site, 0, &a) && ReadTensor(site, 1, &b)) MatmulGradient(site, a, b);
    return;
  }
  if (a_weight || adds) return Bad(site, "contents", "has no rule for weights here");
  WeightUse use;
  if (!ReadTensor(site, 0, &a) || !ReadWeight(site, 1, &b, &use)) return;
  if (a.adjoint != 0) return MatmulBackward(site, a, b, use);
  Values values{&a, &b};
  Definition definition;
  definition.opcode = Opcode::kMatmul;
  definition.inputs[0] = a.hash;
  definition.weights[0] = use;
  definition.transpose_b = site.instruction->source->integers[4] != 0;
  definition.hash = Mix(Mix(site.instruction->identity, a.hash), b.hash);
  Value c = Derive(site, &a, 1);
  if (site.instruction->source->integers[3] != 0) {
    return Bad(site, "contents", "transposes activations");
  }
  if (use.layer >= 0) {
    if (c.depth != use.layer && c.depth != use.layer - 1) {
      return Bad(site, "training",
                 absl::StrCat("applies layer ", use.layer, " to the output of layer ", c.depth));
    }
    c.depth = use.layer;
  }
  if (!ApplyLayouts(site, values)) return;
  Define(definition);
  c.hash = definition.hash;
  c.layout = codes_[2];
  c.rows = site.operands[2].rows;
  c.columns = site.operands[2].columns;
  Write(site, 2, c);
}

// dx = dy W.
void Executor::MatmulBackward(const Site& site, const Value& dy, const Value& weight,
                              const WeightUse& use) {
  Definition* const forward = Trace(site, dy, Opcode::kMatmul);
  if (forward == nullptr) return;
  const bool transposed = site.instruction->source->integers[4] != 0;
  if (forward->weights[0].hash != use.hash || transposed == forward->transpose_b ||
      site.instruction->source->integers[3] != 0) {
    return Bad(site, "gradient", "does not multiply by the weight of its forward operation");
  }
  Values values{&dy, &weight};
  if (!ApplyLayouts(site, values)) return;
  Value dx = Derive(site, &dy, 1);
  dx.hash = Mix(Mix(site.instruction->identity, dy.hash), use.hash);
  dx.adjoint = forward->inputs[0];
  dx.terms = 1;
  dx.layout = codes_[2];
  dx.rows = site.operands[2].rows;
  dx.columns = site.operands[2].columns;
  Write(site, 2, dx);
}

// dW += dy^T x for y = x W^T, dW += x^T dy for y = x W.
void Executor::MatmulGradient(const Site& site, const Value& a, const Value& b) {
  const bool dy_first = a.adjoint != 0;
  const Value& dy = dy_first ? a : b;
  const Value& x = dy_first ? b : a;
  Definition* const forward = Trace(site, dy, Opcode::kMatmul);
  if (forward == nullptr) return;
  const auto& integers = site.instruction->source->integers;
  if (x.adjoint != 0 || forward->inputs[0] != x.hash || forward->transpose_b != dy_first ||
      integers[3] != 1 || integers[4] != 0) {
    return Bad(site, "gradient", "is not the gradient of the weight of its forward operation");
  }
  Value c;  // Matmul overwrites what was there
  c.kind = ValueKind::kZero;
  c.layout.fill(kAnyLayout);
  if (site.instruction->opcode == Opcode::kMatmulAdd && !ReadAccumulator(site, 2, &c)) return;
  if (ApplyLayouts(site, Values{&a, &b, &c})) AddGradient(site, 2, c, *forward, 0, dy);
}

// RMSNorm and LayerNorm: dy, x, w, statistics, dx, dw(, db).
void Executor::NormBackward(const Site& site) {
  const Opcode opcode = site.instruction->opcode;
  const bool layer_norm =
      opcode == Opcode::kLayerNormBackward || opcode == Opcode::kLayerNormBackwardAdd;
  const bool adds =
      opcode == Opcode::kRmsNormBackwardAdd || opcode == Opcode::kLayerNormBackwardAdd;
  const int statistics = layer_norm ? 2 : 1;
  const int dx_at = 3 + statistics;
  Value dy, x, w, dx, statistic[2], sums[2];
  WeightUse use;
  if (!ReadTensor(site, 0, &dy) || !ReadTensor(site, 1, &x) || !ReadWeight(site, 2, &w, &use)) {
    return;
  }
  Definition* const forward =
      Trace(site, dy, layer_norm ? Opcode::kLayerNormForward : Opcode::kRmsNormForward);
  if (forward == nullptr) return;
  bool fits = forward->inputs[0] == x.hash && forward->weights[0].hash == use.hash;
  Values values{&dy, &x, &w};
  for (int i = 0; i < statistics; ++i) {
    if (!ReadTensor(site, 3 + i, &statistic[i])) return;
    fits = fits && statistic[i].hash == Mix(forward->hash, static_cast<uint64_t>(i + 1));
    values[3 + i] = &statistic[i];
    if (!ReadAccumulator(site, dx_at + 1 + i, &sums[i])) return;
    values[dx_at + 1 + i] = &sums[i];
  }
  if (!fits) return Bad(site, "gradient", "gets other values than its forward operation used");
  int terms = 1;
  if (adds) {
    if (!ReadTensor(site, dx_at, &dx)) return;
    values[dx_at] = &dx;
    const int before = TermsToward(dx, x.hash);
    if (before == 0) return BadOperand(site, dx_at, "gradient", "is not the gradient of x");
    terms += before;
  }
  if (!ApplyLayouts(site, values)) return;
  Value result = Derive(site, &dy, 1);
  result.hash = Mix(Mix(site.instruction->identity, dy.hash), adds ? dx.hash : 0);
  result.adjoint = x.hash;
  result.terms = terms;
  result.layout = codes_[dx_at];
  result.rows = site.operands[dx_at].rows;
  result.columns = site.operands[dx_at].columns;
  Write(site, dx_at, result);
  for (int i = 0; i < statistics; ++i) {
    AddGradient(site, dx_at + 1 + i, sums[i], *forward, i, result);
  }
}

void Executor::HeadNormBackward(const Site& site) {
  Value dy, x, wq, wk, rstd, dwq, dwk;
  WeightUse q, k;
  if (!ReadTensor(site, 0, &dy) || !ReadTensor(site, 1, &x) || !ReadWeight(site, 2, &wq, &q) ||
      !ReadWeight(site, 3, &wk, &k) || !ReadTensor(site, 4, &rstd) ||
      !ReadAccumulator(site, 5, &dwq) || !ReadAccumulator(site, 6, &dwk)) {
    return;
  }
  Definition* const forward = Trace(site, dy, Opcode::kHeadNormForward);
  if (forward == nullptr) return;
  if (forward->inputs[0] != x.hash || forward->weights[0].hash != q.hash ||
      forward->weights[1].hash != k.hash || rstd.hash != Mix(forward->hash, 1)) {
    return Bad(site, "gradient", "gets other values than its forward operation used");
  }
  if (!ApplyLayouts(site, Values{&dy, &x, &wq, &wk, &rstd, &dwq, &dwk})) return;
  dy.hash = Mix(site.instruction->identity, dy.hash);
  dy.adjoint = x.hash;
  dy.terms = 1;
  dy.layout = codes_[0];
  Write(site, 0, dy);
  AddGradient(site, 5, dwq, *forward, 0, dy);
  AddGradient(site, 6, dwk, *forward, 1, dy);
}

void Executor::BiasBackward(const Site& site) {
  Value dy, db;
  if (!ReadTensor(site, 0, &dy) || !ReadAccumulator(site, 1, &db)) return;
  Definition* const forward = Trace(site, dy, Opcode::kBiasForward);
  if (forward == nullptr || !ApplyLayouts(site, Values{&dy, &db})) return;
  AddGradient(site, 1, db, *forward, 0, dy);
}

// Tables of tokens (tokens, dx, dtable) and of positions (dx, dtable).
void Executor::EmbeddingBackward(const Site& site) {
  const bool tokens = site.instruction->opcode == Opcode::kEmbeddingBackward;
  const int dx_at = tokens ? 1 : 0;
  Value ids, dx, table;
  if (tokens && !ReadTensor(site, 0, &ids)) return;
  if (!ReadTensor(site, dx_at, &dx) || !ReadAccumulator(site, dx_at + 1, &table)) return;
  Definition* const forward =
      Trace(site, dx, tokens ? Opcode::kEmbeddingForward : Opcode::kPositionForward);
  if (forward == nullptr) return;
  if (tokens && forward->inputs[0] != ids.hash) {
    return Bad(site, "gradient", "gets other tokens than its forward operation");
  }
  const Values values = tokens ? Values{&ids, &dx, &table} : Values{&dx, &table};
  if (!ApplyLayouts(site, values)) return;
  AddGradient(site, dx_at + 1, table, *forward, 0, dx);
}

void Executor::RopeBackward(const Site& site) {
  Value dy, table;
  if (!ReadTensor(site, 0, &dy) || !ReadTensor(site, 1, &table)) return;
  Definition* const forward = Trace(site, dy, Opcode::kRopeForward);
  if (forward == nullptr) return;
  if (forward->inputs[1] != table.hash) return Bad(site, "gradient", "gets another table");
  if (!ApplyLayouts(site, Values{&dy, &table})) return;
  dy.hash = Mix(site.instruction->identity, dy.hash);
  dy.adjoint = forward->inputs[0];
  dy.terms = 1;
  dy.layout = codes_[0];
  Write(site, 0, dy);
}

void Executor::AttentionBackward(const Site& site) {
  Value qkv, o, lse, dy;
  if (!ReadTensor(site, 0, &qkv) || !ReadTensor(site, 1, &o) || !ReadTensor(site, 2, &lse) ||
      !ReadTensor(site, 3, &dy)) {
    return;
  }
  Definition* const forward = Trace(site, dy, Opcode::kAttentionForward);
  if (forward == nullptr) return;
  if (forward->inputs[0] != qkv.hash || o.hash != forward->hash ||
      lse.hash != Mix(forward->hash, 1)) {
    return Bad(site, "gradient", "gets other values than its forward operation used");
  }
  if (!ApplyLayouts(site, Values{&qkv, &o, &lse, &dy})) return;
  Value dqkv = Derive(site, &dy, 1);
  dqkv.hash = Mix(site.instruction->identity, dy.hash);
  dqkv.adjoint = qkv.hash;
  dqkv.terms = 1;
  dqkv.layout = codes_[4];
  dqkv.rows = qkv.rows;
  dqkv.columns = qkv.columns;
  Write(site, 4, dqkv);
  --in_flight_[site.stage].now;
}

// SwiGLU and GELU: x, dy, dx.
void Executor::ActivationBackward(const Site& site) {
  const bool gated = site.instruction->opcode == Opcode::kSwigluBackward;
  Value x, dy;
  if (!ReadTensor(site, 0, &x) || !ReadTensor(site, 1, &dy)) return;
  Definition* const forward =
      Trace(site, dy, gated ? Opcode::kSwigluForward : Opcode::kGeluForward);
  if (forward == nullptr) return;
  if (forward->inputs[0] != x.hash) {
    return Bad(site, "gradient", "gets other values than its forward operation used");
  }
  if (!ApplyLayouts(site, Values{&x, &dy})) return;
  Value dx = Derive(site, &dy, 1);
  dx.hash = Mix(site.instruction->identity, dy.hash);
  dx.adjoint = x.hash;
  dx.terms = 1;
  dx.layout = codes_[2];
  dx.rows = x.rows;
  dx.columns = x.columns;
  Write(site, 2, dx);
}

// c = a + b: activations, or two parts of one gradient.
void Executor::AddOf(const Site& site) {
  Value in[2];
  if (!ReadTensor(site, 0, &in[0]) || !ReadTensor(site, 1, &in[1])) return;
  if (in[0].rows != in[1].rows || in[0].columns != in[1].columns ||
      in[0].kind != ValueKind::kTensor || in[1].kind != ValueKind::kTensor) {
    return Bad(site, "contents", "adds tensors of different shapes");
  }
  if (!ApplyLayouts(site, Values{&in[0], &in[1]})) return;
  Value sum = Derive(site, in, 2);
  sum.rows = in[0].rows;
  sum.columns = in[0].columns;
  sum.layout = codes_[2];
  sum.hash = Mix(Mix(site.instruction->identity, in[0].hash), in[1].hash);
  if ((in[0].adjoint != 0) != (in[1].adjoint != 0)) {
    return Bad(site, "gradient", "adds a gradient to an activation");
  }
  if (in[0].adjoint != 0) {
    int a = TermsToward(in[0], in[1].adjoint);
    int b = in[1].terms;
    sum.adjoint = in[1].adjoint;
    if (a == 0) {
      a = in[0].terms;
      b = TermsToward(in[1], in[0].adjoint);
      sum.adjoint = in[0].adjoint;
    }
    if (a == 0 || b == 0) return Bad(site, "gradient", "adds gradients of different tensors");
    sum.terms = a + b;
  } else {
    Definition definition;
    definition.opcode = Opcode::kAdd;
    definition.hash = sum.hash;
    definition.inputs = {in[0].hash, in[1].hash, 0};
    Define(definition);
  }
  Write(site, 2, sum);
}

}  // namespace planc::verifying
