#ifndef PLANC_RUNTIME_STEP_OPERAND_TYPES_H_
#define PLANC_RUNTIME_STEP_OPERAND_TYPES_H_

#include "absl/status/status.h"
#include "schemas/plan.h"

namespace planc {

// Whether the operands of the instruction have the element types that its handler takes, by
// operand_types.def, so that no plan makes a handler read past an operand because of its type.
// Errors: InvalidArgument with block, instruction and operand.
// REQUIRES: counts of operands as in opcode.def; every operand has a buffer.
absl::Status CheckOperandTypes(const Plan& plan, const Block& block, int instruction);

}  // namespace planc

#endif  // PLANC_RUNTIME_STEP_OPERAND_TYPES_H_
