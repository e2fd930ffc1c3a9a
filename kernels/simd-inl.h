// Vector building blocks of the host kernels, compiled once per instruction set (see
// hwy/foreach_target.h). Elementwise work gives the same bits for every vector width; sums run in
// kSumLanes lanes whatever the width is, so results do not depend on the instruction set either.
#if defined(PLANC_KERNELS_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLANC_KERNELS_SIMD_INL_H_
#undef PLANC_KERNELS_SIMD_INL_H_
#else
#define PLANC_KERNELS_SIMD_INL_H_
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"
#include "kernels/bf16.h"
#include "kernels/element_type.h"

// On the body of a vector loop. Without it the compiler calls the body, and keeps sums in memory.
#ifndef PLANC_INLINE_BODY
#define PLANC_INLINE_BODY HWY_ATTR __attribute__((always_inline))
#endif

HWY_BEFORE_NAMESPACE();
namespace planc::host::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using FloatTag = hn::ScalableTag<float>;
using FloatVec = hn::Vec<FloatTag>;
using BitsTag = hn::Rebind<uint32_t, FloatTag>;
using HalfBitsTag = hn::Rebind<uint16_t, FloatTag>;

inline constexpr size_t kLanes = hn::MaxLanes(FloatTag());
inline constexpr size_t kSumLanes = 32;
inline constexpr size_t kParts = kSumLanes / kLanes;
static_assert(kSumLanes % kLanes == 0);

HWY_INLINE FloatVec SetAll(float value) { return hn::Set(FloatTag(), value); }

HWY_INLINE FloatVec LoadFull(const float* from) { return hn::LoadU(FloatTag(), from); }
HWY_INLINE FloatVec LoadFull(const Bf16* from) {
  const auto bits = hn::LoadU(HalfBitsTag(), reinterpret_cast<const uint16_t*>(from));
  return hn::BitCast(FloatTag(), hn::ShiftLeft<16>(hn::PromoteTo(BitsTag(), bits)));
}

HWY_INLINE void StoreFull(FloatVec value, float* to) { hn::StoreU(value, FloatTag(), to); }
// Rounds as ToBf16 does.
HWY_INLINE void StoreFull(FloatVec value, Bf16* to) {
  const BitsTag tag;
  const auto bits = hn::BitCast(tag, value);
  const auto upper = hn::ShiftRight<16>(bits);
  const auto is_odd = hn::And(upper, hn::Set(tag, 1u));
  const auto rounded = hn::ShiftRight<16>(hn::Add(bits, hn::Add(is_odd, hn::Set(tag, 0x7fffu))));
  const auto quiet = hn::Or(upper, hn::Set(tag, 0x40u));
  const auto is_nan = hn::RebindMask(tag, hn::IsNaN(value));
  const auto result = hn::IfThenElse(is_nan, quiet, rounded);
  const hn::Rebind<int32_t, FloatTag> signed_tag;
  hn::StoreU(hn::DemoteTo(HalfBitsTag(), hn::BitCast(signed_tag, result)), HalfBitsTag(),
             reinterpret_cast<uint16_t*>(to));
}

// The first `count` elements, 1 <= count <= kLanes; the lanes behind them are zero.
template <typename T>
HWY_INLINE FloatVec Load(const T* from, size_t count) {
  if (HWY_LIKELY(count == kLanes)) return LoadFull(from);
  T padded[kLanes] = {};
  std::memcpy(padded, from, count * sizeof(T));
  return LoadFull(padded);
}

template <typename T>
HWY_INLINE void Store(FloatVec value, T* to, size_t count) {
  if (HWY_LIKELY(count == kLanes)) return StoreFull(value, to);
  T padded[kLanes];
  StoreFull(value, padded);
  std::memcpy(to, padded, count * sizeof(T));
}

// Lanes from `count` on become `fill`.
HWY_INLINE FloatVec KeepFirst(FloatVec value, size_t count, float fill) {
  if (HWY_LIKELY(count == kLanes)) return value;
  return hn::IfThenElse(hn::FirstN(FloatTag(), count), value, SetAll(fill));
}

// Calls body(i, count) for the vectors of [0, n): `count` elements from element i.
template <typename Body>
HWY_INLINE void ForEachVector(size_t n, const Body& body) {
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) body(i, kLanes);
  if (i < n) body(i, n - i);
}

// The same for sums: calls body(part, i, count), where part = (i / kLanes) % kParts is the part of
// a LaneSum that these elements belong to, and a constant once the loops are unrolled.
template <typename Body>
HWY_INLINE void ForEachPart(size_t n, const Body& body) {
  size_t i = 0;
  for (; i + kSumLanes <= n; i += kSumLanes) {
#pragma GCC unroll 8
    for (size_t part = 0; part < kParts; ++part) body(part, i + part * kLanes, kLanes);
  }
#pragma GCC unroll 8
  for (size_t part = 0; part < kParts; ++part) {
    const size_t begin = i + part * kLanes;
    if (begin < n) body(part, begin, n - begin < kLanes ? n - begin : kLanes);
  }
}

// Adds the upper half of kSumLanes values to the lower one until one is left.
template <typename T>
HWY_INLINE T FoldLanes(T* lanes) {
  for (size_t width = kSumLanes / 2; width > 0; width /= 2) {
    for (size_t i = 0; i < width; ++i) lanes[i] += lanes[i + width];
  }
  return lanes[0];
}

// A sum over elements: element i is added in lane i % kSumLanes.
class LaneSum {
 public:
  HWY_INLINE LaneSum() {
    for (size_t part = 0; part < kParts; ++part) parts_[part] = hn::Zero(FloatTag());
  }
  HWY_INLINE void Add(size_t part, FloatVec value) { parts_[part] = hn::Add(parts_[part], value); }
  HWY_INLINE void AddProduct(size_t part, FloatVec a, FloatVec b) {
    parts_[part] = hn::MulAdd(a, b, parts_[part]);
  }
  HWY_INLINE float Total() const {
    float lanes[kSumLanes];
    for (size_t part = 0; part < kParts; ++part) StoreFull(parts_[part], lanes + part * kLanes);
    return FoldLanes(lanes);
  }

 private:
  FloatVec parts_[kParts];
};

// exp(x) for every float: 0 from -104 down, infinity from about 88.73 up, NaN for NaN.
HWY_INLINE FloatVec Exp(FloatVec x) {
  const FloatTag tag;
  const FloatVec bounded = hn::Max(hn::Min(x, SetAll(89.0f)), SetAll(-104.5f));
  return hn::IfThenElse(hn::IsNaN(x), x, hn::Exp(tag, bounded));
}

// 1 / (1 + exp(-x)).
HWY_INLINE FloatVec Sigmoid(FloatVec x) {
  const FloatVec one = SetAll(1.0f);
  return hn::Div(one, hn::Add(one, Exp(hn::Neg(x))));
}

// to[i] += from[i].
template <typename To, typename From>
HWY_INLINE void AddRow(const From* from, size_t n, To* to) {
  ForEachVector(n, [&](size_t i, size_t count) PLANC_INLINE_BODY {
    Store(hn::Add(Load(to + i, count), Load(from + i, count)), to + i, count);
  });
}

// gradient[i] += sum over blocks, in block order, of partial[block * stride + i].
inline void AddBlocks(const float* partial, int64_t blocks, int64_t stride, int64_t n, DType dtype,
                      void* gradient) {
  WithElementType(dtype, [&](auto element) HWY_ATTR {
    auto* to = static_cast<decltype(element)*>(gradient);
    ForEachVector(n, [&](size_t i, size_t count) PLANC_INLINE_BODY {
      FloatVec sum = Load(partial + i, count);
      for (int64_t block = 1; block < blocks; ++block) {
        sum = hn::Add(sum, Load(partial + block * stride + i, count));
      }
      Store(hn::Add(Load(to + i, count), sum), to + i, count);
    });
  });
}

}  // namespace planc::host::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // PLANC_KERNELS_SIMD_INL_H_
