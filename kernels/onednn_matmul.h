#ifndef PLANC_KERNELS_ONEDNN_MATMUL_H_
#define PLANC_KERNELS_ONEDNN_MATMUL_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "kernels/matmul.h"

namespace planc::host {

// What oneDNN has for a shape on this machine.
struct OneDnnMatmulOffer {
  std::unique_ptr<Matmul> matmul;
  int64_t scratch_bytes = 0;  // Of the workspace, used by Run.
  // Whether the kernel packs its operands in that scratch alone. Those that go through oneDNN's
  // general gemm (named "gemm:...", all it has for AVX2) allocate packing buffers on every call.
  bool keeps_to_scratch = false;
};

// Prepares the product with oneDNN for `threads` OpenMP threads. Unimplemented where oneDNN has no
// optimised kernel for these types on this machine.
//
// Every run of a oneDNN primitive allocates a few hundred bytes of bookkeeping inside the library
// (its table of arguments), whatever the kernel.
// REQUIRES: a shape that Matmul::Create has checked, with its leading dimensions filled in.
absl::StatusOr<OneDnnMatmulOffer> MakeOneDnnMatmul(const MatmulShape& shape, int threads);

}  // namespace planc::host

#endif  // PLANC_KERNELS_ONEDNN_MATMUL_H_
