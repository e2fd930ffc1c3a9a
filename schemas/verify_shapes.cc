#include "schemas/verify_shapes.h"

#include "schemas/verify_report.h"
#include "schemas/verify_scratch.h"

namespace planc::verifying {
namespace {

using Shapes = std::array<OperandShape, kMaxOperands>;

constexpr ElementRule kA = ElementRule::kActivation;
constexpr ElementRule kG = ElementRule::kGradient;
constexpr ElementRule kF = ElementRule::kFloat;
constexpr ElementRule kS = ElementRule::kScalarSum;
constexpr ElementRule kI = ElementRule::kIndex;
constexpr ElementRule kAny = ElementRule::kAny;

constexpr OperandShape kScratch{0, 1, ElementRule::kScratch, false};

Shapes NormShapes(Opcode opcode, int64_t t, int64_t h) {
  const OperandShape x{t, h, kA}, w{h, 1, kA}, dw{h, 1, kG}, row{t, 1, kF};
  switch (opcode) {
    case Opcode::kRmsNormForward:
      return {x, w, x, row};
    case Opcode::kLayerNormForward:
      return {x, w, w, x, row, row};
    case Opcode::kLayerNormBackward:
    case Opcode::kLayerNormBackwardAdd:
      return {x, x, w, row, row, x, dw, dw, kScratch};
    default:
      return {x, x, w, row, x, dw, kScratch};
  }
}

// Ops on the packed heads qkv[T, (A+2K)D]; `i` is rows (or batch, sequence), then A, K, D.
Shapes HeadShapes(Opcode opcode, const int64_t* i) {
  const bool attention =
      opcode == Opcode::kAttentionForward || opcode == Opcode::kAttentionBackward;
  const bool rope = opcode == Opcode::kRopeForward || opcode == Opcode::kRopeBackward;
  const int first = attention || rope ? 2 : 1;
  const int64_t t = attention ? Times(i[0], i[1]) : i[0];
  const int64_t heads = i[first], kv_heads = i[first + 1], d = i[first + 2];
  const OperandShape qkv{t, Times(Plus(heads, Times(2, kv_heads)), d), kA};
  const OperandShape o{t, Times(heads, d), kA}, lse{t, heads, kF}, w{d, 1, kA}, dw{d, 1, kG};
  const OperandShape rstd{t, Plus(heads, kv_heads), kF};
  switch (opcode) {
    case Opcode::kHeadNormForward:
      return {qkv, w, w, qkv, rstd};
    case Opcode::kHeadNormBackward:
      return {qkv, qkv, w, w, rstd, dw, dw, kScratch};
    case Opcode::kAttentionForward:
      return {qkv, o, lse, kScratch};
    case Opcode::kAttentionBackward:
      return {qkv, o, lse, o, qkv, kScratch};
    default:
      return {qkv, OperandShape{i[1], d, kF}};
  }
}

Shapes MatmulShapes(Opcode opcode, const int64_t* i) {
  const int64_t m = i[0], n = i[1], k = i[2];
  const OperandShape a = i[3] != 0 ? OperandShape{k, m, kA} : OperandShape{m, k, kA};
  const OperandShape b = i[4] != 0 ? OperandShape{n, k, kA} : OperandShape{k, n, kA};
  const OperandShape c{m, n, opcode == Opcode::kMatmulAdd ? kG : kAny};
  return {a, b, c, kScratch};
}

Shapes EmbeddingShapes(Opcode opcode, const int64_t* i) {
  const OperandShape tokens{i[0], 1, kI}, x{i[0], i[1], kA};
  switch (opcode) {
    case Opcode::kEmbeddingForward:
      return {tokens, OperandShape{i[2], i[1], kA}, x};
    case Opcode::kEmbeddingBackward:
      return {tokens, x, OperandShape{i[2], i[1], kG}};
    case Opcode::kPositionForward:
      return {x, OperandShape{i[2], i[1], kA, true}};
    default:
      return {x, OperandShape{i[2], i[1], kG, true}};
  }
}

Shapes LossShapes(Opcode opcode, const int64_t* i) {
  const OperandShape row{i[0], 1, kF}, pair{i[0], 2, kF}, targets{i[0], 1, kI}, loss{1, 1, kS};
  if (opcode == Opcode::kLossForward) return {row, pair, targets, loss};
  const OperandShape logits{i[0], i[1], kA};
  if (opcode == Opcode::kLossMax) return {logits, row};
  if (opcode == Opcode::kLossSumExp) return {logits, row, targets, pair};
  return {row, pair, targets, logits, loss};
}

Shapes FlatShapes(Opcode opcode, const int64_t* i, int64_t members) {
  const int64_t n = i[0];
  const OperandShape any{n, 1, kAny}, state{n, 1, kF}, one{1, 1, kF};
  const OperandShape whole{Times(n, members), 1, kAny};
  switch (opcode) {
    case Opcode::kAdamw:
      return {OperandShape{n, 1, kG}, one, state, state, state};
    case Opcode::kAdamwCast:
      return {OperandShape{n, 1, kG}, one, state, state, state, OperandShape{n, 1, kA}};
    case Opcode::kSumSquares:
      return {OperandShape{n, 1, kG}, OperandShape{1, 1, kS}};
    case Opcode::kAllReduce:
      return {any, kScratch};
    case Opcode::kReduceScatter:
      return {whole, any, kScratch};
    case Opcode::kAllGather:
      return {any, whole};
    case Opcode::kAdd: {
      const OperandShape x{n, 1, kA};
      return {x, x, x};
    }
    default:  // Cast, Accumulate, Send, Recv
      return {any, any};
  }
}

Shapes ClipShapes() {
  const OperandShape sum{1, 1, kS}, one{1, 1, kF};
  return {sum, sum, one, one};
}

// All but the bytes of scratch.
Shapes MatrixShapes(Opcode opcode, const int64_t* i, int64_t members) {
  switch (opcode) {
    case Opcode::kEmbeddingForward:
    case Opcode::kEmbeddingBackward:
    case Opcode::kPositionForward:
    case Opcode::kPositionBackward:
      return EmbeddingShapes(opcode, i);
    case Opcode::kRmsNormForward:
    case Opcode::kRmsNormBackward:
    case Opcode::kRmsNormBackwardAdd:
    case Opcode::kLayerNormForward:
    case Opcode::kLayerNormBackward:
    case Opcode::kLayerNormBackwardAdd:
      return NormShapes(opcode, i[0], i[1]);
    case Opcode::kHeadNormForward:
    case Opcode::kHeadNormBackward:
    case Opcode::kRopeForward:
    case Opcode::kRopeBackward:
    case Opcode::kAttentionForward:
    case Opcode::kAttentionBackward:
      return HeadShapes(opcode, i);
    case Opcode::kMatmul:
    case Opcode::kMatmulAdd:
      return MatmulShapes(opcode, i);
    case Opcode::kBiasForward:
      return {OperandShape{i[0], i[1], kA}, OperandShape{i[1], 1, kA}};
    case Opcode::kBiasBackward:
      return {OperandShape{i[0], i[1], kA}, OperandShape{i[1], 1, kG}, kScratch};
    case Opcode::kSwigluForward:
      return {OperandShape{i[0], Times(2, i[1]), kA}, OperandShape{i[0], i[1], kA}};
    case Opcode::kSwigluBackward:
      return {OperandShape{i[0], Times(2, i[1]), kA}, OperandShape{i[0], i[1], kA},
              OperandShape{i[0], Times(2, i[1]), kA}};
    case Opcode::kGeluForward:
    case Opcode::kGeluBackward: {
      const OperandShape x{i[0], i[1], kA};
      return {x, x, x};
    }
    case Opcode::kLossMax:
    case Opcode::kLossSumExp:
    case Opcode::kLossGradient:
    case Opcode::kLossForward:
      return LossShapes(opcode, i);
    case Opcode::kZero:
      return {OperandShape{-1, 1, kAny}};
    case Opcode::kClipCoefficient:
      return ClipShapes();
    case Opcode::kLoadTokens:
    case Opcode::kLoadTargets:
      return {OperandShape{i[0], 1, kI}};
    case Opcode::kInitParameters:
      return {OperandShape{-1, 1, kF}};
    case Opcode::kRopeTable:
      return {OperandShape{i[0], i[1], kF}};
    case Opcode::kCast:
    case Opcode::kAccumulate:
    case Opcode::kSumSquares:
    case Opcode::kAdamw:
    case Opcode::kAdamwCast:
    case Opcode::kAdd:
    case Opcode::kAllReduce:
    case Opcode::kReduceScatter:
    case Opcode::kAllGather:
    case Opcode::kSend:
    case Opcode::kRecv:
      return FlatShapes(opcode, i, members);
  }
  return {};
}

}  // namespace

Shapes ShapesOf(Opcode opcode, const int64_t* i, int64_t members, int64_t element) {
  Shapes shapes = MatrixShapes(opcode, i, members);
  for (OperandShape& shape : shapes) {
    if (shape.rule != ElementRule::kScratch) continue;
    shape.rows = LeastScratchBytes(opcode, i, members, element);
  }
  return shapes;
}

}  // namespace planc::verifying
