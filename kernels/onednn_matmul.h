#ifndef PLANC_KERNELS_ONEDNN_MATMUL_H_
#define PLANC_KERNELS_ONEDNN_MATMUL_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "kernels/matmul.h"

namespace planc::host {

// Prepares the product with oneDNN for `threads` OpenMP threads. Unimplemented where oneDNN has no
// optimised kernel for these types on this machine. The scratch that it wants differs from machine
// to machine: see Matmul::workspace_bytes.
//
// Every run of a oneDNN primitive allocates a few hundred bytes of bookkeeping inside the library
// (its table of arguments), whatever the kernel. Kernels that go through its general gemm (named
// "gemm:...", all it has for AVX2) allocate packing buffers on every call, too.
// REQUIRES: a shape that Matmul::Create has checked, with its leading dimensions filled in.
absl::StatusOr<std::unique_ptr<Matmul>> MakeOneDnnMatmul(const MatmulShape& shape, int threads);

}  // namespace planc::host

#endif  // PLANC_KERNELS_ONEDNN_MATMUL_H_
