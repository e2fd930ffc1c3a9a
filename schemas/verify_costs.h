#ifndef PLANC_SCHEMAS_VERIFY_COSTS_H_
#define PLANC_SCHEMAS_VERIFY_COSTS_H_

#include "schemas/plan.h"

namespace planc::verifying {

// What the instruction costs one rank, by its attributes, operands and group.
// REQUIRES: CheckStructure and CheckBounds find nothing wrong with the instruction.
Cost CostOf(const Plan& plan, const Instruction& instruction);

}  // namespace planc::verifying

#endif  // PLANC_SCHEMAS_VERIFY_COSTS_H_
