// Products of small fp32 blocks, the inner loop of attention and of the packed matrix product.
// Included once per vector target; see hwy/foreach_target.h.
#if defined(PLANC_KERNELS_BLOCK_PRODUCT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLANC_KERNELS_BLOCK_PRODUCT_INL_H_
#undef PLANC_KERNELS_BLOCK_PRODUCT_INL_H_
#else
#define PLANC_KERNELS_BLOCK_PRODUCT_INL_H_
#endif

#include <cstdint>

#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "kernels/block_layout.h"
#include "kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace planc::host {
namespace HWY_NAMESPACE {
inline constexpr int kPanelVectors = static_cast<int>(kPanelWidth / kLanes);
static_assert(kPanelVectors * kLanes == kPanelWidth);

// Rows of C held in registers: 12 accumulators, whether a panel is one vector wide or two.
inline constexpr int kStripRows = kPanelVectors == 1 ? 12 : 6;
static_assert(kRowGroup % kStripRows == 0);

// The left operand: element (row, p) is data[row * row_stride + p * depth_stride].
struct LeftBlock {
  const float* data;
  int64_t row_stride;
  int64_t depth_stride;
};

// C[kRows, 16] = A[kRows, depth] B[depth, 16], or += with kAdd. B is one panel, C has row stride
// c_stride. Every element is summed over p in order with fused multiply-adds, starting from zero,
// so that its value does not depend on the vector width nor on how rows are cut into strips.
template <int kRows, bool kAdd>
HWY_INLINE void StripProduct(int64_t depth, const LeftBlock& a, const float* HWY_RESTRICT b,
                             float* HWY_RESTRICT c, int64_t c_stride) {
  constexpr int64_t kStep = kLanes;
  FloatVec sums[kRows][kPanelVectors];
  // One pointer per three rows: x86 addresses reach offsets of 0, 1 and 2 strides.
  constexpr int kPointers = (kRows + 2) / 3;
  const float* HWY_RESTRICT left[kPointers];
#pragma GCC unroll 12
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kPanelVectors; ++v) sums[r][v] = SetAll(0.0f);
  }
#pragma GCC unroll 4
  for (int i = 0; i < kPointers; ++i) left[i] = a.data + 3 * i * a.row_stride;
  for (int64_t p = 0; p < depth; ++p) {
    FloatVec right[kPanelVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kPanelVectors; ++v) right[v] = LoadFull(b + v * kStep);
#pragma GCC unroll 12
    for (int r = 0; r < kRows; ++r) {
      const FloatVec value = SetAll(left[r / 3][(r % 3) * a.row_stride]);
#pragma GCC unroll 4
      for (int v = 0; v < kPanelVectors; ++v) {
        sums[r][v] = hn::MulAdd(value, right[v], sums[r][v]);
      }
    }
#pragma GCC unroll 4
    for (int i = 0; i < kPointers; ++i) left[i] += a.depth_stride;
    b += kPanelWidth;
  }
#pragma GCC unroll 12
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kPanelVectors; ++v) {
      float* HWY_RESTRICT out = c + r * c_stride + v * kStep;
      if (kAdd) sums[r][v] = hn::Add(LoadFull(out), sums[r][v]);
      StoreFull(sums[r][v], out);
    }
  }
}

// The same for kStripRows rows of a left operand packed as [depth][kStripRows], which one pointer
// and the stream prefetcher follow.
template <bool kAdd>
HWY_NOINLINE void PackedStripProduct(int64_t depth, const float* HWY_RESTRICT a,
                                     const float* HWY_RESTRICT b, float* HWY_RESTRICT c,
                                     int64_t c_stride) {
  constexpr int64_t kStep = kLanes;
  FloatVec sums[kStripRows][kPanelVectors];
#pragma GCC unroll 12
  for (int r = 0; r < kStripRows; ++r) {
    // The sixteen floats of a row of C may lie in two cache lines.
    hwy::Prefetch(c + r * c_stride);
    hwy::Prefetch(c + r * c_stride + kPanelWidth - 1);
#pragma GCC unroll 4
    for (int v = 0; v < kPanelVectors; ++v) sums[r][v] = SetAll(0.0f);
  }
#pragma GCC unroll 4
  for (int64_t p = 0; p < depth; ++p) {
    FloatVec right[kPanelVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kPanelVectors; ++v) right[v] = LoadFull(b + v * kStep);
#pragma GCC unroll 12
    for (int r = 0; r < kStripRows; ++r) {
      const FloatVec value = SetAll(a[r]);
#pragma GCC unroll 4
      for (int v = 0; v < kPanelVectors; ++v) {
        sums[r][v] = hn::MulAdd(value, right[v], sums[r][v]);
      }
    }
    a += kStripRows;
    b += kPanelWidth;
  }
#pragma GCC unroll 12
  for (int r = 0; r < kStripRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kPanelVectors; ++v) {
      float* HWY_RESTRICT out = c + r * c_stride + v * kStep;
      if (kAdd) sums[r][v] = hn::Add(LoadFull(out), sums[r][v]);
      StoreFull(sums[r][v], out);
    }
  }
}

// StripProduct for a number of rows known only at run time, 1 <= rows <= kRows.
template <bool kAdd, int kRows = kStripRows>
HWY_INLINE void StripProductOf(int64_t rows, int64_t depth, const LeftBlock& a, const float* b,
                               float* c, int64_t c_stride) {
  if constexpr (kRows > 1) {
    if (rows < kRows) return StripProductOf<kAdd, kRows - 1>(rows, depth, a, b, c, c_stride);
  }
  StripProduct<kRows, kAdd>(depth, a, b, c, c_stride);
}

// C[rows, 16 * panels] = A[rows, depth] B, or += with kAdd, for at most kStripRows rows. Panel i
// of B starts at b + i * b_panel_stride, its columns of C at c + i * c_panel_stride.
template <bool kAdd>
HWY_NOINLINE void PanelsProduct(int64_t rows, int64_t depth, int64_t panels, const LeftBlock& a,
                                const float* b, int64_t b_panel_stride, float* c, int64_t c_stride,
                                int64_t c_panel_stride) {
  for (int64_t i = 0; i < panels; ++i) {
    StripProductOf<kAdd>(rows, depth, a, b + i * b_panel_stride, c + i * c_panel_stride, c_stride);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace planc::host
HWY_AFTER_NAMESPACE();

#endif  // PLANC_KERNELS_BLOCK_PRODUCT_INL_H_
