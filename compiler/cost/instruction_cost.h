#ifndef PLANC_COMPILER_COST_INSTRUCTION_COST_H_
#define PLANC_COMPILER_COST_INSTRUCTION_COST_H_

#include <vector>

#include "schemas/plan.h"

namespace planc {

// Work of one instruction on one rank. FLOPs count a multiply and an add as two; bytes are those
// of the operands, each once (scratch does not count, nor do rows of a table that no token needs
// and heads that stay as they are); bytes sent are those of bandwidth-optimal algorithms:
// all-reduce 2 (n-1)/n, reduce-scatter and all-gather (n-1)/n of the whole (Patarasuk and Yuan
// 2009). `operand_dtypes` has one for each operand. `group_size` is 1 for instructions without a
// group.
Cost InstructionCost(const Instruction& instruction, const std::vector<DType>& operand_dtypes,
                     int64_t group_size);

}  // namespace planc

#endif  // PLANC_COMPILER_COST_INSTRUCTION_COST_H_
