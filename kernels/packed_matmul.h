#ifndef PLANC_KERNELS_PACKED_MATMUL_H_
#define PLANC_KERNELS_PACKED_MATMUL_H_

#include <cstdint>
#include <memory>

#include "kernels/matmul.h"

namespace planc::host {

// Bytes of the fp32 blocks that the packed product keeps in its workspace.
int64_t PackedMatmulWorkspaceBytes(const MatmulShape& shape);

// planc's own product. C is computed in blocks of at most 768 x 512: for each, pieces of A and B
// are converted to fp32 and rearranged in the workspace (Goto and van de Geijn 2008), multiplied
// into an fp32 block, and that block is stored, added or rounded into C. Never allocates. Threads
// compute separate parts of C and never wait for each other before the end; the result depends
// neither on their number nor on the width of the vectors.
// REQUIRES: a shape that Matmul::Create has checked, with its leading dimensions filled in.
std::unique_ptr<Matmul> MakePackedMatmul(const MatmulShape& shape);

}  // namespace planc::host

#endif  // PLANC_KERNELS_PACKED_MATMUL_H_
