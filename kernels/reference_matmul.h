#ifndef PLANC_KERNELS_REFERENCE_MATMUL_H_
#define PLANC_KERNELS_REFERENCE_MATMUL_H_

#include <cstdint>
#include <vector>

#include "kernels/matmul.h"

namespace planc::host {

// The plain product: c = op(a) op(b), or += with shape.accumulate, in `Scalar` arithmetic. Leading
// dimensions must be filled in (not 0); the types of the shape are ignored.
template <typename Scalar>
void ReferenceMatmul(const MatmulShape& shape, const std::vector<Scalar>& a,
                     const std::vector<Scalar>& b, std::vector<Scalar>& c) {
  for (int64_t i = 0; i < shape.m; ++i) {
    for (int64_t j = 0; j < shape.n; ++j) {
      Scalar sum = 0;
      for (int64_t p = 0; p < shape.k; ++p) {
        const Scalar left = a[shape.transpose_a ? p * shape.lda + i : i * shape.lda + p];
        const Scalar right = b[shape.transpose_b ? j * shape.ldb + p : p * shape.ldb + j];
        sum += left * right;
      }
      Scalar& out = c[i * shape.ldc + j];
      out = shape.accumulate ? out + sum : sum;
    }
  }
}

}  // namespace planc::host

#endif  // PLANC_KERNELS_REFERENCE_MATMUL_H_
