#ifndef PLANC_RUNTIME_STEP_WORKSPACE_H_
#define PLANC_RUNTIME_STEP_WORKSPACE_H_

#include <cstdint>

#include "kernels/matmul.h"
#include "schemas/plan.h"

namespace planc {

// The product that a matmul or matmul_add asks for.
host::MatmulShape MatmulShapeOf(const Plan& plan, const Instruction& instruction);

// Bytes of workspace without which the host kernel of `instruction` cannot run; 0 for opcodes
// without a workspace operand. Some keep more threads busy where they get more.
int64_t NeededWorkspaceBytes(const Plan& plan, const Instruction& instruction);

}  // namespace planc

#endif  // PLANC_RUNTIME_STEP_WORKSPACE_H_
