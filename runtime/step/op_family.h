#ifndef PLANC_RUNTIME_STEP_OP_FAMILY_H_
#define PLANC_RUNTIME_STEP_OP_FAMILY_H_

#include <cstdint>

#include "schemas/opcode.h"

namespace planc {

// Opcodes that share a limit, for profiles. X(enumerator, text).
#define PLANC_OP_FAMILIES(X)         \
  X(kProducts, "products")           \
  X(kAttention, "attention")         \
  X(kNorms, "norms")                 \
  X(kRotary, "rotary")               \
  X(kActivations, "activations")     \
  X(kEmbedding, "embedding")         \
  X(kLoss, "loss")                   \
  X(kElementwise, "elementwise")     \
  X(kOptimizer, "optimizer")         \
  X(kCommunication, "communication") \
  X(kHost, "host")

enum class OpFamily : uint8_t {
#define PLANC_OP_FAMILY_ENUM(name, text) name,
  PLANC_OP_FAMILIES(PLANC_OP_FAMILY_ENUM)
#undef PLANC_OP_FAMILY_ENUM
};

inline constexpr int kOpFamilyCount = 0
#define PLANC_OP_FAMILY_ONE(name, text) +1
    PLANC_OP_FAMILIES(PLANC_OP_FAMILY_ONE)
#undef PLANC_OP_FAMILY_ONE
    ;

const char* OpFamilyName(OpFamily family);
OpFamily FamilyOf(Opcode opcode);

}  // namespace planc

#endif  // PLANC_RUNTIME_STEP_OP_FAMILY_H_
