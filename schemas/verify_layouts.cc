#include "schemas/verify_layouts.h"

namespace planc::verifying {
namespace {

constexpr uint8_t kR = kReplicated;
constexpr uint8_t kP = kPartialSum;
constexpr uint8_t kM = kPartialMax;
constexpr uint8_t kS0 = kRows;
constexpr uint8_t kS1 = kColumns;
constexpr uint8_t kAny = kAnyLayout;

bool IsRowsOrWhole(uint8_t code) { return code == kR || code == kS0; }
bool IsSplitOrWhole(uint8_t code) { return code == kR || code == kS0 || code == kS1; }

int64_t Integer(const AxisCase& c, int index) { return c.instruction.source->integers[index]; }

// Adds `contribution` to updated operand `k`.
bool Sum(AxisCase& c, int k, uint8_t contribution) {
  c.out[k] = contribution;
  return c.in[k] == kAny || c.in[k] == contribution;
}

// Whether the gradient dy goes with the forward value x, and what a sum over rows of their product
// is. Backward operations are linear in dy, so a partial dy gives partial results.
bool Pair(uint8_t dy, uint8_t x, uint8_t* dx, uint8_t* over_rows, bool columns_too) {
  *dx = dy;
  if (dy == kP && x == kR) {
    *over_rows = kP;
    return true;
  }
  *over_rows = x == kR ? kR : kP;
  return dy == x && (columns_too ? IsSplitOrWhole(x) : IsRowsOrWhole(x));
}

bool MatmulRule(AxisCase& c) {
  const bool ta = Integer(c, 3) != 0, tb = Integer(c, 4) != 0;
  const uint8_t a_m = ta ? kS1 : kS0, a_k = ta ? kS0 : kS1;
  const uint8_t b_n = tb ? kS0 : kS1, b_k = tb ? kS1 : kS0;
  const uint8_t a = c.in[0], b = c.in[1];
  uint8_t product = kAny;
  if (a == kR && b == kR) product = kR;
  if (a == a_m && b == kR) product = kS0;
  if (a == kR && b == b_n) product = kS1;
  if ((a == a_k && b == b_k) || (a == kP && b == kR) || (a == kR && b == kP)) product = kP;
  if (product == kAny) return false;
  if (c.instruction.opcode == Opcode::kMatmulAdd) return Sum(c, 2, product);
  c.out[2] = product;
  return true;
}

bool EmbeddingRule(AxisCase& c) {
  const uint8_t tokens = c.in[0];
  const bool forward = c.instruction.opcode == Opcode::kEmbeddingForward;
  if (c.axis == Axis::kTp) {  // the operation takes its rows of the table by the tp coordinate
    if (tokens != kR) return false;
    if (!forward) return c.in[1] == kR && Sum(c, 2, kS0);
    c.out[2] = kP;
    return c.in[1] == kS0;
  }
  if (!IsRowsOrWhole(tokens)) return false;
  if (forward) {
    c.out[2] = tokens;
    return c.in[1] == kR;
  }
  uint8_t dx = kR, over_rows = kR;
  return Pair(c.in[1], tokens, &dx, &over_rows, false) && Sum(c, 2, over_rows);
}

bool PositionRule(AxisCase& c) {
  const uint8_t x = c.in[0];
  const int64_t rows = Integer(c, 0), sequence = Integer(c, 2), row_stride = Integer(c, 3);
  // Rows start at a sequence, but for the rows that tp splits, which start at row_stride each.
  const bool from_tp = c.axis == Axis::kTp;
  if (from_tp && row_stride != (x == kS0 ? rows : 0)) return false;
  if (!from_tp && x == kS0 && row_stride == 0 && rows % sequence != 0) return false;
  if (c.instruction.opcode == Opcode::kPositionForward) {
    c.out[0] = x;
    return IsRowsOrWhole(x) && c.in[1] == kR;
  }
  return (IsRowsOrWhole(x) || x == kP) && Sum(c, 1, x == kR ? kR : kP);
}

bool NormForwardRule(AxisCase& c, int first_weight, int weights) {
  const uint8_t x = c.in[0];
  for (int k = first_weight; k < first_weight + weights; ++k) {
    if (c.in[k] != kR) return false;
  }
  for (int k = first_weight + weights; k < c.instruction.operand_count; ++k) c.out[k] = x;
  return c.instruction.opcode == Opcode::kHeadNormForward ? IsSplitOrWhole(x) : IsRowsOrWhole(x);
}

// dy, x, w, statistics..., dx, gradients..., workspace.
bool NormBackwardRule(AxisCase& c, int statistics, bool add) {
  const uint8_t x = c.in[1];
  const int dx = 3 + statistics;
  uint8_t dx_code = kR, over_rows = kR;
  if (!Pair(c.in[0], x, &dx_code, &over_rows, false) || c.in[2] != kR) return false;
  for (int k = 3; k < dx; ++k) {
    if (c.in[k] != x) return false;
  }
  c.out[dx] = dx_code;
  if (add && !Sum(c, dx, dx_code)) return false;
  for (int k = 0; k < statistics; ++k) {  // one gradient for each of weight (and bias)
    if (!Sum(c, dx + 1 + k, over_rows)) return false;
  }
  return true;
}

bool HeadNormBackwardRule(AxisCase& c) {
  uint8_t dx = kR, over_rows = kR;
  if (!Pair(c.in[0], c.in[1], &dx, &over_rows, true)) return false;
  if (c.in[2] != kR || c.in[3] != kR || c.in[4] != c.in[1]) return false;
  c.out[0] = dx;
  return Sum(c, 5, over_rows) && Sum(c, 6, over_rows);
}

bool BiasRule(AxisCase& c) {
  const uint8_t y = c.in[0];
  if (c.instruction.opcode == Opcode::kBiasForward) {
    c.out[0] = y;
    return IsSplitOrWhole(y) && c.in[1] == (y == kS1 ? kS0 : kR);
  }
  if (y == kS1) return Sum(c, 1, kS0);
  return (IsRowsOrWhole(y) || y == kP) && Sum(c, 1, y == kR ? kR : kP);
}

// Attention and rotary embedding need whole sequences: only data-parallel axes may split rows.
bool WholeSequences(const AxisCase& c, uint8_t x) {
  const bool data = c.axis == Axis::kDpReplicate || c.axis == Axis::kDpShard;
  return x == kR || (data ? x == kS0 : x == kS1);
}

bool RopeRule(AxisCase& c) {
  const uint8_t x = c.in[0];
  c.out[0] = x;
  const bool partial = x == kP && c.instruction.opcode == Opcode::kRopeBackward;
  return c.in[1] == kR && (WholeSequences(c, x) || partial);
}

bool AttentionRule(AxisCase& c) {
  const uint8_t x = c.in[0];
  if (!WholeSequences(c, x)) return false;
  if (c.instruction.opcode == Opcode::kAttentionForward) {
    c.out[1] = c.out[2] = x;
    return true;
  }
  c.out[4] = c.in[3];
  return c.in[1] == x && c.in[2] == x && (c.in[3] == x || (c.in[3] == kP && x == kR));
}

bool ActivationRule(AxisCase& c, bool forward) {
  const uint8_t x = c.in[0];
  if (!IsSplitOrWhole(x)) return false;
  c.out[1] = x;
  if (forward) return true;
  c.out[2] = c.in[1];
  return c.in[1] == x || (c.in[1] == kP && x == kR);
}

bool LossMaxRule(AxisCase& c) {
  const uint8_t logits = c.in[0];
  c.out[1] = logits == kS1 ? kM : logits;
  return logits == kS1 ? c.axis == Axis::kTp : IsRowsOrWhole(logits);
}

bool LossSumExpRule(AxisCase& c) {
  const uint8_t logits = c.in[0], max = c.in[1], targets = c.in[2];
  if (max != targets) return false;
  c.out[3] = logits == kS1 ? kP : logits;
  if (logits == kS1) return c.axis == Axis::kTp && max == kR;
  // The operation takes its columns by the tp coordinate, so whole logits need tp to be whole too.
  return c.axis != Axis::kTp && IsRowsOrWhole(logits) && max == logits;
}

bool LossRule(AxisCase& c) {
  const uint8_t rows = c.in[0];
  if (!IsRowsOrWhole(rows) || c.in[1] != rows || c.in[2] != rows) return false;
  const int loss = c.instruction.opcode == Opcode::kLossGradient ? 4 : 3;
  if (loss == 4) {
    const uint8_t logits = c.in[3];
    c.out[3] = logits;
    const bool fits =
        logits == kS1 ? c.axis == Axis::kTp && rows == kR : c.axis != Axis::kTp && logits == rows;
    if (!fits) return false;
  }
  return Sum(c, loss, rows == kR ? kR : kP);
}

bool SumSquaresRule(AxisCase& c) {
  const uint8_t g = c.in[0];
  const bool once = (Integer(c, 1) & AxisBit(c.axis)) != 0;
  if (g == kR) return Sum(c, 1, once ? kP : kR);
  return !once && (g == kS0 || g == kAsUnit) && Sum(c, 1, kP);
}

bool AdamwRule(AxisCase& c) {
  const uint8_t g = c.in[0];
  if (c.axis == Axis::kDpShard ? g != kS0 : g != kR && g != kAsUnit) return false;
  if (c.axis != Axis::kTp && g == kAsUnit) return false;
  if (c.in[1] != kR || c.in[2] != g || c.in[3] != g || c.in[4] != g) return false;
  for (int k = 2; k < c.instruction.operand_count; ++k) c.out[k] = g;
  return true;
}

bool ElementwiseRule(AxisCase& c) {
  switch (c.instruction.opcode) {
    case Opcode::kAdd:
      c.out[2] = c.in[0];
      return c.in[0] == c.in[1] && c.in[0] != kM;
    case Opcode::kAccumulate:
      return c.in[0] != kM && Sum(c, 1, c.in[0]);
    default:  // Cast
      c.out[1] = c.in[0];
      return c.in[0] != kM;
  }
}

}  // namespace

bool ApplyAxisRule(AxisCase& c) {
  switch (c.instruction.opcode) {
    case Opcode::kEmbeddingForward:
    case Opcode::kEmbeddingBackward:
      return EmbeddingRule(c);
    case Opcode::kPositionForward:
    case Opcode::kPositionBackward:
      return PositionRule(c);
    case Opcode::kRmsNormForward:
      return NormForwardRule(c, 1, 1);
    case Opcode::kLayerNormForward:
    case Opcode::kHeadNormForward:
      return NormForwardRule(c, 1, 2);
    case Opcode::kRmsNormBackward:
    case Opcode::kRmsNormBackwardAdd:
      return NormBackwardRule(c, 1, c.instruction.opcode == Opcode::kRmsNormBackwardAdd);
    case Opcode::kLayerNormBackward:
    case Opcode::kLayerNormBackwardAdd:
      return NormBackwardRule(c, 2, c.instruction.opcode == Opcode::kLayerNormBackwardAdd);
    case Opcode::kHeadNormBackward:
      return HeadNormBackwardRule(c);
    case Opcode::kMatmul:
    case Opcode::kMatmulAdd:
      return MatmulRule(c);
    case Opcode::kBiasForward:
    case Opcode::kBiasBackward:
      return BiasRule(c);
    case Opcode::kRopeForward:
    case Opcode::kRopeBackward:
      return RopeRule(c);
    case Opcode::kAttentionForward:
    case Opcode::kAttentionBackward:
      return AttentionRule(c);
    case Opcode::kSwigluForward:
    case Opcode::kGeluForward:
      return ActivationRule(c, true);
    case Opcode::kSwigluBackward:
    case Opcode::kGeluBackward:
      return ActivationRule(c, false);
    case Opcode::kLossMax:
      return LossMaxRule(c);
    case Opcode::kLossSumExp:
      return LossSumExpRule(c);
    case Opcode::kLossGradient:
    case Opcode::kLossForward:
      return LossRule(c);
    case Opcode::kSumSquares:
      return SumSquaresRule(c);
    case Opcode::kClipCoefficient:
      c.out[2] = c.out[3] = kR;
      return c.in[0] == kR && c.in[1] == kR;
    case Opcode::kAdamw:
    case Opcode::kAdamwCast:
      return AdamwRule(c);
    case Opcode::kAdd:
    case Opcode::kCast:
    case Opcode::kAccumulate:
      return ElementwiseRule(c);
    default:
      return false;  // no local operation on values
  }
}

bool ApplyCollectiveRule(Opcode opcode, bool maximum, uint8_t in, uint8_t* out) {
  switch (opcode) {
    case Opcode::kAllReduce:
      *out = kR;
      return in == (maximum ? kM : kP);
    case Opcode::kReduceScatter:
      *out = kS0;
      return in == kP;
    default:  // AllGather
      *out = kR;
      return in == kS0;
  }
}

const char* CodeText(uint8_t code) {
  static constexpr const char* kTexts[] = {"R", "P", "M", "U", "S0", "S1", "any", "S"};
  return code < 8 ? kTexts[code] : "?";
}

}  // namespace planc::verifying
