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

// The left operand of a strip by rows: element (r, p) is data[r * stride + p].
struct LeftRows {
  const float* data;
  int64_t stride;
};

// The left operand of a strip by columns: element (r, p) is data[p * stride + r].
struct LeftColumns {
  const float* data;
  int64_t stride;
};

// Walks a left operand along the depth.
template <int kRows, class Left>
class LeftCursor;

template <int kRows>
class LeftCursor<kRows, LeftRows> {
 public:
  HWY_INLINE explicit LeftCursor(const LeftRows& left) : stride_(left.stride) {
#pragma GCC unroll 4
    for (int i = 0; i < kPointers; ++i) row_[i] = left.data + 3 * i * stride_;
  }
  HWY_INLINE float At(int r) const { return row_[r / 3][(r % 3) * stride_]; }
  HWY_INLINE void Step() {
#pragma GCC unroll 4
    for (int i = 0; i < kPointers; ++i) ++row_[i];
  }

 private:
  // One pointer per three rows: x86 addresses reach offsets of 0, 1 and 2 strides.
  static constexpr int kPointers = (kRows + 2) / 3;
  const float* HWY_RESTRICT row_[kPointers];
  int64_t stride_;
};

template <int kRows>
class LeftCursor<kRows, LeftColumns> {
 public:
  HWY_INLINE explicit LeftCursor(const LeftColumns& left)
      : column_(left.data), stride_(left.stride) {}
  HWY_INLINE float At(int r) const { return column_[r]; }
  HWY_INLINE void Step() { column_ += stride_; }

 private:
  const float* HWY_RESTRICT column_;
  int64_t stride_;
};

// C[kRows, 16] = A[kRows, depth] B[depth, 16], or += with kAdd. B is one panel, C has row stride
// c_stride. Every element is summed over p in order with fused multiply-adds, starting from zero,
// so that its value does not depend on the vector width nor on how rows are cut into strips.
template <int kRows, bool kAdd, class Left>
HWY_INLINE void StripProduct(int64_t depth, const Left& a, const float* HWY_RESTRICT b,
                             float* HWY_RESTRICT c, int64_t c_stride) {
  constexpr int64_t kStep = kLanes;
  FloatVec sums[kRows][kPanelVectors];
  LeftCursor<kRows, Left> left(a);
#pragma GCC unroll 12
  for (int r = 0; r < kRows; ++r) {
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
    for (int r = 0; r < kRows; ++r) {
      const FloatVec value = SetAll(left.At(r));
#pragma GCC unroll 4
      for (int v = 0; v < kPanelVectors; ++v) {
        sums[r][v] = hn::MulAdd(value, right[v], sums[r][v]);
      }
    }
    left.Step();
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

// Panels whose products with one strip fill the registers: with vectors as wide as a panel, twelve
// rows of one panel are twelve of 32 accumulators, and wait for the loads of A.
inline constexpr int kPanelsAtOnce = kPanelVectors == 1 ? 2 : 1;

// PackedStripProduct with two panels, `panel_stride` floats apart, for 32 columns of C.
template <bool kAdd>
HWY_NOINLINE void PackedStripPairProduct(int64_t depth, const float* HWY_RESTRICT a,
                                         const float* HWY_RESTRICT b, int64_t panel_stride,
                                         float* HWY_RESTRICT c, int64_t c_stride) {
  constexpr int kVectors = 2 * kPanelVectors;
  FloatVec sums[kStripRows][kVectors];
#pragma GCC unroll 12
  for (int r = 0; r < kStripRows; ++r) {
    hwy::Prefetch(c + r * c_stride);
    hwy::Prefetch(c + r * c_stride + kPanelWidth);
    hwy::Prefetch(c + r * c_stride + 2 * kPanelWidth - 1);
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) sums[r][v] = SetAll(0.0f);
  }
  const auto at = [&](int v) {
    return v / kPanelVectors * panel_stride + v % kPanelVectors * static_cast<int64_t>(kLanes);
  };
  for (int64_t p = 0; p < depth; ++p) {
    FloatVec right[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) right[v] = LoadFull(b + at(v));
#pragma GCC unroll 12
    for (int r = 0; r < kStripRows; ++r) {
      const FloatVec value = SetAll(a[r]);
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) sums[r][v] = hn::MulAdd(value, right[v], sums[r][v]);
    }
    a += kStripRows;
    b += kPanelWidth;
  }
#pragma GCC unroll 12
  for (int r = 0; r < kStripRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      float* HWY_RESTRICT out = c + r * c_stride + v * static_cast<int64_t>(kLanes);
      if (kAdd) sums[r][v] = hn::Add(LoadFull(out), sums[r][v]);
      StoreFull(sums[r][v], out);
    }
  }
}

// StripProduct of a whole strip packed as [depth][kStripRows].
template <bool kAdd>
HWY_NOINLINE void PackedStripProduct(int64_t depth, const float* a, const float* b, float* c,
                                     int64_t c_stride) {
  StripProduct<kStripRows, kAdd>(depth, LeftColumns{a, kStripRows}, b, c, c_stride);
}

template <int kRows, bool kAdd, class Left>
HWY_INLINE void ShortStripProduct(int64_t rows, int64_t depth, const Left& a, const float* b,
                                  float* c, int64_t c_stride) {
  if constexpr (kRows > 1) {
    if (rows < kRows) {
      return ShortStripProduct<kRows - 1, kAdd>(rows, depth, a, b, c, c_stride);
    }
  }
  StripProduct<kRows, kAdd>(depth, a, b, c, c_stride);
}

// StripProduct for a number of rows known only at run time, 1 <= rows <= kStripRows.
template <bool kAdd, class Left>
HWY_NOINLINE void StripProductOf(int64_t rows, int64_t depth, const Left& a, const float* b,
                                 float* c, int64_t c_stride) {
  ShortStripProduct<kStripRows, kAdd>(rows, depth, a, b, c, c_stride);
}

}  // namespace HWY_NAMESPACE
}  // namespace planc::host
HWY_AFTER_NAMESPACE();

#endif  // PLANC_KERNELS_BLOCK_PRODUCT_INL_H_
