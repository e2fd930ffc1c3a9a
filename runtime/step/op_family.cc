#include "runtime/step/op_family.h"

namespace planc {

const char* OpFamilyName(OpFamily family) {
  switch (family) {
#define PLANC_OP_FAMILY_NAME(name, text) \
  case OpFamily::name:                   \
    return text;
    PLANC_OP_FAMILIES(PLANC_OP_FAMILY_NAME)
#undef PLANC_OP_FAMILY_NAME
  }
  return "?";
}

// Without a default: the compiler names an opcode that is missing.
OpFamily FamilyOf(Opcode opcode) {
  switch (opcode) {
    case Opcode::kMatmul:
    case Opcode::kMatmulAdd:
      return OpFamily::kProducts;
    case Opcode::kAttentionForward:
    case Opcode::kAttentionBackward:
      return OpFamily::kAttention;
    case Opcode::kRmsNormForward:
    case Opcode::kRmsNormBackward:
    case Opcode::kRmsNormBackwardAdd:
    case Opcode::kLayerNormForward:
    case Opcode::kLayerNormBackward:
    case Opcode::kLayerNormBackwardAdd:
    case Opcode::kHeadNormForward:
    case Opcode::kHeadNormBackward:
      return OpFamily::kNorms;
    case Opcode::kRopeForward:
    case Opcode::kRopeBackward:
    case Opcode::kRopeTable:
      return OpFamily::kRotary;
    case Opcode::kSwigluForward:
    case Opcode::kSwigluBackward:
    case Opcode::kGeluForward:
    case Opcode::kGeluBackward:
      return OpFamily::kActivations;
    case Opcode::kEmbeddingForward:
    case Opcode::kEmbeddingBackward:
    case Opcode::kPositionForward:
    case Opcode::kPositionBackward:
      return OpFamily::kEmbedding;
    case Opcode::kLossMax:
    case Opcode::kLossSumExp:
    case Opcode::kLossGradient:
    case Opcode::kLossForward:
      return OpFamily::kLoss;
    case Opcode::kBiasForward:
    case Opcode::kBiasBackward:
    case Opcode::kAdd:
    case Opcode::kZero:
    case Opcode::kCast:
    case Opcode::kAccumulate:
      return OpFamily::kElementwise;
    case Opcode::kSumSquares:
    case Opcode::kClipCoefficient:
    case Opcode::kAdamw:
    case Opcode::kAdamwCast:
      return OpFamily::kOptimizer;
    case Opcode::kAllReduce:
    case Opcode::kReduceScatter:
    case Opcode::kAllGather:
    case Opcode::kSend:
    case Opcode::kRecv:
      return OpFamily::kCommunication;
    case Opcode::kLoadTokens:
    case Opcode::kLoadTargets:
    case Opcode::kInitParameters:
      return OpFamily::kHost;
  }
  return OpFamily::kHost;
}

}  // namespace planc
