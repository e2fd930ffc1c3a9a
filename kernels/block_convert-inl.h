// Moving rows between storage (float or Bf16) and the fp32 blocks that block products read.
// Included once per vector target; see hwy/foreach_target.h.
#if defined(PLANC_KERNELS_BLOCK_CONVERT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLANC_KERNELS_BLOCK_CONVERT_INL_H_
#undef PLANC_KERNELS_BLOCK_CONVERT_INL_H_
#else
#define PLANC_KERNELS_BLOCK_CONVERT_INL_H_
#endif

#include <cstdint>

#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "kernels/bf16.h"
#include "kernels/block_layout.h"
#include "kernels/block_product-inl.h"
#include "kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace planc::host {
namespace HWY_NAMESPACE {
// Loads four elements as floats.
HWY_INLINE hn::Vec<hn::FixedTag<float, 4>> LoadFour(const float* source) {
  return hn::LoadU(hn::FixedTag<float, 4>(), source);
}
HWY_INLINE hn::Vec<hn::FixedTag<float, 4>> LoadFour(const Bf16* source) {
  const hn::FixedTag<uint16_t, 4> d16;
  const hn::FixedTag<uint32_t, 4> d32;
  const auto bits = hn::LoadU(d16, reinterpret_cast<const uint16_t*>(source));
  return hn::BitCast(hn::FixedTag<float, 4>(), hn::ShiftLeft<16>(hn::PromoteTo(d32, bits)));
}

// destination[i] = source[i] * scale for i < count; zeros up to padded_count.
template <class T>
HWY_INLINE void LoadRow(const T* source, int64_t count, float scale, float* destination,
                        int64_t padded_count) {
  constexpr int64_t kStep = kLanes;
  const FloatVec factor = SetAll(scale);
  int64_t i = 0;
  for (; i + kStep <= count; i += kStep) {
    StoreFull(hn::Mul(LoadFull(source + i), factor), destination + i);
  }
  for (; i < count; ++i) destination[i] = ToFloat(source[i]) * scale;
  for (; i < padded_count; ++i) destination[i] = 0.0f;
}

// destination[i] = source[i] * scale, rounded to T, for i < count.
template <class T>
HWY_INLINE void StoreRow(const float* source, int64_t count, float scale, T* destination) {
  constexpr int64_t kStep = kLanes;
  const FloatVec factor = SetAll(scale);
  int64_t i = 0;
  for (; i + kStep <= count; i += kStep) {
    StoreFull(hn::Mul(LoadFull(source + i), factor), destination + i);
  }
  for (; i < count; ++i) destination[i] = FromFloat<T>(source[i] * scale);
}

// Rows that packing asks the memory for in advance.
inline constexpr int64_t kPrefetchRows = 8;
// Columns that are packed side by side, so that rows are read in long pieces and each cache line
// only once, and still what is written at a time stays in the first-level cache at any distance.
inline constexpr int64_t kColumnsAtOnce = 48;
static_assert(kColumnsAtOnce % kPanelWidth == 0 && kColumnsAtOnce % kStripRows == 0);

// Copies `kWidth` elements as floats.
template <int64_t kWidth, class T>
HWY_INLINE void CopyRow(const T* source, float* out) {
  constexpr int64_t kStep = kLanes;
  int64_t j = 0;
#pragma GCC unroll 4
  for (; j + kStep <= kWidth; j += kStep) StoreFull(LoadFull(source + j), out + j);
#pragma GCC unroll 4
  for (; j + 4 <= kWidth; j += 4) {
    hn::StoreU(LoadFour(source + j), hn::FixedTag<float, 4>(), out + j);
  }
#pragma GCC unroll 4
  for (; j < kWidth; ++j) out[j] = ToFloat(source[j]);
}

// Blocks of kWidth columns of a row-major source, one after another at distance `block_stride`:
// block[p][j] = source[p * stride + j] for p < depth; columns past the last are zero.
template <int64_t kWidth, class T>
HWY_INLINE void PackColumns(const T* source, int64_t stride, int64_t depth, int64_t columns,
                            int64_t block_stride, float* first) {
  const int64_t whole = columns / kWidth * kWidth;
  for (int64_t begin = 0; begin < whole; begin += kColumnsAtOnce) {
    const int64_t end = HWY_MIN(begin + kColumnsAtOnce, whole);
    for (int64_t p = 0; p < depth; ++p) {
      const T* row = source + p * stride;
      float* out = first + begin / kWidth * block_stride + p * kWidth;
      for (int64_t j = begin; j < end; j += kWidth) {
        hwy::Prefetch(row + j + kPrefetchRows * stride);
        CopyRow<kWidth>(row + j, out);
        out += block_stride;
      }
    }
  }
  if (whole == columns) return;
  float* last = first + whole / kWidth * block_stride;
  for (int64_t p = 0; p < depth; ++p) {
    for (int64_t j = 0; j < kWidth; ++j) {
      last[p * kWidth + j] = whole + j < columns ? ToFloat(source[p * stride + whole + j]) : 0.0f;
    }
  }
}

// Transposes four rows of four: out[p * kOutStride + j] = source[j * stride + p] for p, j in [0,
// 4).
template <int64_t kOutStride, class T>
HWY_INLINE void TransposeFourByFour(const T* source, int64_t stride, float* out) {
  const hn::FixedTag<float, 4> d;
  const auto r0 = LoadFour(source);
  const auto r1 = LoadFour(source + stride);
  const auto r2 = LoadFour(source + 2 * stride);
  const auto r3 = LoadFour(source + 3 * stride);
  const auto low01 = hn::InterleaveLower(d, r0, r1);
  const auto high01 = hn::InterleaveUpper(d, r0, r1);
  const auto low23 = hn::InterleaveLower(d, r2, r3);
  const auto high23 = hn::InterleaveUpper(d, r2, r3);
  hn::StoreU(hn::ConcatLowerLower(d, low23, low01), d, out);
  hn::StoreU(hn::ConcatUpperUpper(d, low23, low01), d, out + kOutStride);
  hn::StoreU(hn::ConcatLowerLower(d, high23, high01), d, out + 2 * kOutStride);
  hn::StoreU(hn::ConcatUpperUpper(d, high23, high01), d, out + 3 * kOutStride);
}

// One panel from a transposed source: panel[p][j] = source[j * stride + p] for j < width, and 0
// for width <= j < kPanelWidth. Goes over the depth in pieces of a cache line, so that rows whose
// addresses collide in the cache are still read only once.
template <class T>
HWY_INLINE void PackPanelTransposed(const T* source, int64_t stride, int64_t depth, int64_t width,
                                    float* panel) {
  constexpr int64_t kPiece = 32;
  const int64_t whole = width == kPanelWidth ? depth / 4 * 4 : 0;
  for (int64_t begin = 0; begin < whole; begin += kPiece) {
    const int64_t end = HWY_MIN(begin + kPiece, whole);
    for (int64_t j = 0; j < kPanelWidth; j += 4) {
      for (int64_t p = begin; p < end; p += 4) {
        TransposeFourByFour<kPanelWidth>(source + j * stride + p, stride,
                                         panel + p * kPanelWidth + j);
      }
    }
  }
  for (int64_t p = whole; p < depth; ++p) {
    float* out = panel + p * kPanelWidth;
    for (int64_t j = 0; j < kPanelWidth; ++j) {
      out[j] = j < width ? ToFloat(source[j * stride + p]) : 0.0f;
    }
  }
}

// Panels over the rows of `source` [rows, depth] (its transpose, 16 rows at a time), one after
// another.
template <class T>
HWY_INLINE void PackRowsTransposed(const T* source, int64_t stride, int64_t rows, int64_t depth,
                                   float* panels) {
  for (int64_t row = 0; row < rows; row += kPanelWidth) {
    PackPanelTransposed(source + row * stride, stride, depth, HWY_MIN(kPanelWidth, rows - row),
                        panels + row * depth);
  }
}

// Transposes two rows of four: out[p * kOutStride + j] = source[j * stride + p], p < 4, j < 2.
template <int64_t kOutStride, class T>
HWY_INLINE void TransposeTwoByFour(const T* source, int64_t stride, float* out) {
  const hn::FixedTag<float, 4> d;
  const hn::FixedTag<float, 2> half;
  const auto r0 = LoadFour(source);
  const auto r1 = LoadFour(source + stride);
  const auto low = hn::InterleaveLower(d, r0, r1);
  const auto high = hn::InterleaveUpper(d, r0, r1);
  hn::StoreU(hn::LowerHalf(half, low), half, out);
  hn::StoreU(hn::UpperHalf(half, low), half, out + kOutStride);
  hn::StoreU(hn::LowerHalf(half, high), half, out + 2 * kOutStride);
  hn::StoreU(hn::UpperHalf(half, high), half, out + 3 * kOutStride);
}

// One strip of a left operand whose rows are rows of `source`: strip[p][r] = source[r * stride + p]
// for r < rows, and 0 for rows <= r < kStripRows.
template <class T>
HWY_INLINE void PackStripTransposed(const T* source, int64_t stride, int64_t depth, int64_t rows,
                                    float* strip) {
  const int64_t whole = rows == kStripRows ? depth / 4 * 4 : 0;
  for (int64_t p = 0; p < whole; p += 4) {
    float* out = strip + p * kStripRows;
    int64_t r = 0;
#pragma GCC unroll 3
    for (; r + 4 <= kStripRows; r += 4) {
      TransposeFourByFour<kStripRows>(source + r * stride + p, stride, out + r);
    }
    if (r < kStripRows) {
      TransposeTwoByFour<kStripRows>(source + r * stride + p, stride, out + r);
    }
  }
  for (int64_t p = whole; p < depth; ++p) {
    float* out = strip + p * kStripRows;
    for (int64_t r = 0; r < kStripRows; ++r) {
      out[r] = r < rows ? ToFloat(source[r * stride + p]) : 0.0f;
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace planc::host
HWY_AFTER_NAMESPACE();

#endif  // PLANC_KERNELS_BLOCK_CONVERT_INL_H_
