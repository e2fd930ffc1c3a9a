#ifndef PLANC_KERNELS_CONTEXT_H_
#define PLANC_KERNELS_CONTEXT_H_

#include <cstddef>

#include "kernels/instruction_set.h"

namespace planc::host {

// What a host kernel may use besides its operands. Kernels never allocate: an op that needs scratch
// declares `...WorkspaceBytes(shape)`, a function of the shape alone, and finds that many bytes
// here. No result depends on `threads`: work is cut along rows, columns or fixed blocks, and every
// reduction across such pieces is summed in one fixed order.
struct KernelContext {
  void* workspace = nullptr;   // 64-byte aligned, contents undefined before and after a call
  size_t workspace_bytes = 0;  // at least what the op's WorkspaceBytes function returns
  int threads = 1;             // OpenMP threads the op may use, >= 1
  // The largest set that the op may use: what all ranks of the job have.
  InstructionSet instruction_set = InstructionSet::kAvx2;
};

}  // namespace planc::host

#endif  // PLANC_KERNELS_CONTEXT_H_
