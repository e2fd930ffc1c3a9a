#ifndef PLANC_KERNELS_PACKED_MATMUL_H_
#define PLANC_KERNELS_PACKED_MATMUL_H_

#include <cstdint>
#include <memory>

#include "kernels/matmul.h"

namespace planc::host {

// Bytes of the fp32 blocks that the packed product keeps in its workspace.
int64_t PackedMatmulWorkspaceBytes(const MatmulShape& shape);

// planc's own product, after Goto and van de Geijn 2008: for at most 1024 columns of C and 384 of
// the depth at a time, pieces of B and then of A are converted to fp32 and rearranged in the
// workspace, and their product is added to C, or to a block of fp32 sums where C is bf16, which is
// rounded into C at the end. Never allocates. Threads compute separate parts of C and never wait
// for each other before the end; the result depends neither on their number nor on the width of the
// vectors.
// REQUIRES: a shape that Matmul::Create has checked, with its leading dimensions filled in.
std::unique_ptr<Matmul> MakePackedMatmul(const MatmulShape& shape);

}  // namespace planc::host

#endif  // PLANC_KERNELS_PACKED_MATMUL_H_
