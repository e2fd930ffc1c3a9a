#ifndef PLANC_RUNTIME_STEP_WORKSPACE_H_
#define PLANC_RUNTIME_STEP_WORKSPACE_H_

#include <cstdint>

#include "kernels/matmul.h"
#include "schemas/plan.h"

namespace planc {

// The product that a matmul or matmul_add asks for.
host::MatmulShape MatmulShapeOf(const Plan& plan, const Instruction& instruction);

// Bytes of workspace that the host kernel of `instruction` wants with `threads` threads; 0 for
// opcodes without a workspace operand.
int64_t WantedWorkspaceBytes(const Plan& plan, const Instruction& instruction, int threads);

// The largest number of threads, at most `threads`, for which the planned workspace is enough; 0
// when it is not enough for one thread. No result depends on the number.
int ThreadsThatFit(const Plan& plan, const Instruction& instruction, int threads);

}  // namespace planc

#endif  // PLANC_RUNTIME_STEP_WORKSPACE_H_
