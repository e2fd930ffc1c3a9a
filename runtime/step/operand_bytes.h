#ifndef PLANC_RUNTIME_STEP_OPERAND_BYTES_H_
#define PLANC_RUNTIME_STEP_OPERAND_BYTES_H_

#include <cstdint>

#include "absl/status/status.h"
#include "schemas/plan.h"

namespace planc {

// Whether every operand of the instruction lies in the slot of its pool, on the rank with this
// dp_shard coordinate, and has the bytes that its handler reads and writes by the attributes: no
// plan, proven or not, makes a handler leave the bytes it was given.
// Errors: InvalidArgument with block, instruction and operand.
// REQUIRES: counts of operands and attributes as in opcode.def; every operand has a buffer.
absl::Status CheckOperandBytes(const Plan& plan, const Block& block, int instruction,
                               int64_t dp_shard);

}  // namespace planc

#endif  // PLANC_RUNTIME_STEP_OPERAND_BYTES_H_
