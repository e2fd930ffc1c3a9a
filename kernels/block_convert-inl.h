// Moving rows between storage (float or Bf16) and the fp32 blocks that block products read.
// Included once per vector target; see hwy/foreach_target.h.
#if defined(PLANC_KERNELS_BLOCK_CONVERT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLANC_KERNELS_BLOCK_CONVERT_INL_H_
#undef PLANC_KERNELS_BLOCK_CONVERT_INL_H_
#else
#define PLANC_KERNELS_BLOCK_CONVERT_INL_H_
#endif

#include <cstdint>

#include "hwy/highway.h"
#include "kernels/bf16.h"
#include "kernels/block_layout.h"
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

// One panel of `depth` rows from a row-major source: panel[p][j] = source[p * stride + j] for
// j < width, and 0 for width <= j < kPanelWidth.
template <class T>
HWY_INLINE void PackPanel(const T* source, int64_t stride, int64_t depth, int64_t width,
                          float* panel) {
  constexpr int64_t kStep = kLanes;
  for (int64_t p = 0; p < depth; ++p) {
    const T* row = source + p * stride;
    float* out = panel + p * kPanelWidth;
    if (width == kPanelWidth) {
      for (int64_t j = 0; j < kPanelWidth; j += kStep) StoreFull(LoadFull(row + j), out + j);
    } else {
      for (int64_t j = 0; j < kPanelWidth; ++j) out[j] = j < width ? ToFloat(row[j]) : 0.0f;
    }
  }
}

// Transposes four rows of four: panel[p][j] = source[j * stride + p] for p, j in [0, 4).
template <class T>
HWY_INLINE void TransposeFourByFour(const T* source, int64_t stride, float* panel) {
  const hn::FixedTag<float, 4> d;
  const auto r0 = LoadFour(source);
  const auto r1 = LoadFour(source + stride);
  const auto r2 = LoadFour(source + 2 * stride);
  const auto r3 = LoadFour(source + 3 * stride);
  const auto low01 = hn::InterleaveLower(d, r0, r1);
  const auto high01 = hn::InterleaveUpper(d, r0, r1);
  const auto low23 = hn::InterleaveLower(d, r2, r3);
  const auto high23 = hn::InterleaveUpper(d, r2, r3);
  hn::StoreU(hn::ConcatLowerLower(d, low23, low01), d, panel);
  hn::StoreU(hn::ConcatUpperUpper(d, low23, low01), d, panel + kPanelWidth);
  hn::StoreU(hn::ConcatLowerLower(d, high23, high01), d, panel + 2 * kPanelWidth);
  hn::StoreU(hn::ConcatUpperUpper(d, high23, high01), d, panel + 3 * kPanelWidth);
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
        TransposeFourByFour(source + j * stride + p, stride, panel + p * kPanelWidth + j);
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

}  // namespace HWY_NAMESPACE
}  // namespace planc::host
HWY_AFTER_NAMESPACE();

#endif  // PLANC_KERNELS_BLOCK_CONVERT_INL_H_
