// What TDPBF16PS computes, bit by bit (kernels/amx/tile.h).
#ifndef PLANC_KERNELS_AMX_REFERENCE_H_
#define PLANC_KERNELS_AMX_REFERENCE_H_

#include <cmath>
#include <cstdint>
#include <limits>

namespace planc::host {

// Denormals are zeros, as operands and as results.
inline float FlushDenormal(float value) {
  return std::fabs(value) < std::numeric_limits<float>::min() ? std::copysign(0.0f, value) : value;
}

// c + sum over p < depth of a(p) * b(p), where a and b return values of bf16, summed as successive
// tiles of 32 do.
template <typename Left, typename Right>
float TileSum(float c, int64_t depth, const Left& a, const Right& b) {
  constexpr int64_t kStep = 32;
  for (int64_t first = 0; first < depth; first += kStep) {
    float sums[2] = {};
    for (int64_t p = first; p < first + kStep && p < depth; ++p) {
      float& sum = sums[p % 2];
      sum = FlushDenormal(std::fma(FlushDenormal(a(p)), FlushDenormal(b(p)), sum));
    }
    c = FlushDenormal(FlushDenormal(c) + FlushDenormal(sums[0] + sums[1]));
  }
  return c;
}

}  // namespace planc::host

#endif  // PLANC_KERNELS_AMX_REFERENCE_H_
