#include "kernels/rope.h"

#include <glog/logging.h>

#include <cmath>
#include <numbers>

#include "kernels/element_type.h"
#include "kernels/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/rope.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace planc::host::HWY_NAMESPACE {

// Rotates one head; y may be x.
template <typename T>
HWY_INLINE void RotateHead(const T* x, const float* cosine, const float* sine, float direction,
                           size_t half, T* y) {
  ForEachVector(half, [&](size_t i, size_t count) PLANC_INLINE_BODY {
    const FloatVec a = Load(x + i, count);
    const FloatVec b = Load(x + half + i, count);
    const FloatVec c = Load(cosine + i, count);
    const FloatVec s = hn::Mul(Load(sine + i, count), SetAll(direction));
    Store(hn::NegMulAdd(b, s, hn::Mul(a, c)), y + i, count);
    Store(hn::MulAdd(a, s, hn::Mul(b, c)), y + half + i, count);
  });
}

template <typename T>
void RopeRows(const RopeArgs& args, const KernelContext& ctx) {
  const auto* x = static_cast<const T*>(args.x) + args.x_column;
  auto* y = static_cast<T*>(args.y) + args.y_column;
  const int64_t half = args.head_dim / 2;
  const int64_t grain = RowGrain(args.heads * args.head_dim);
  ParallelFor(ctx.threads, args.tokens, grain, [&](int64_t begin, int64_t end) HWY_ATTR {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t angle = (args.first_row + row) % args.sequence * half;
      for (int64_t head = 0; head < args.heads; ++head) {
        const int64_t column = head * args.head_dim;
        RotateHead(x + row * args.x_stride + column, args.cosine + angle, args.sine + angle,
                   static_cast<float>(args.direction), half, y + row * args.y_stride + column);
      }
    }
  });
}

void Rope(const RopeArgs& args, DType dtype, KernelContext& ctx) {
  WithElementType(dtype, [&](auto element) HWY_ATTR { RopeRows<decltype(element)>(args, ctx); });
}

}  // namespace planc::host::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace planc::host {

HWY_EXPORT(Rope);

void Rope(const RopeArgs& args, DType dtype, KernelContext& ctx) {
  CHECK(args.head_dim % 2 == 0 && args.sequence > 0) << "head_dim " << args.head_dim;
  HWY_DYNAMIC_DISPATCH(Rope)(args, dtype, ctx);
}

namespace {

double ScaleFrequency(double frequency, const RopeScaling& scaling) {
  if (scaling.factor == 1) return frequency;
  const double turns = frequency * static_cast<double>(scaling.original_positions) /
                       (2 * std::numbers::pi);  // over the original context
  if (turns < scaling.low_frequency_factor) return frequency / scaling.factor;
  if (turns > scaling.high_frequency_factor) return frequency;
  const double kept = (turns - scaling.low_frequency_factor) /
                      (scaling.high_frequency_factor - scaling.low_frequency_factor);
  return (1 - kept) * frequency / scaling.factor + kept * frequency;
}

}  // namespace

void FillRopeTable(int64_t first_position, int64_t positions, int64_t head_dim, double theta,
                   const RopeScaling& scaling, float* cosine, float* sine) {
  const int64_t half = head_dim / 2;
  for (int64_t i = 0; i < half; ++i) {
    const double exponent = -2.0 * static_cast<double>(i) / static_cast<double>(head_dim);
    const double frequency = ScaleFrequency(std::pow(theta, exponent), scaling);
    for (int64_t row = 0; row < positions; ++row) {
      const double angle = static_cast<double>(first_position + row) * frequency;
      cosine[row * half + i] = static_cast<float>(std::cos(angle));
      sine[row * half + i] = static_cast<float>(std::sin(angle));
    }
  }
}

}  // namespace planc::host
#endif  // HWY_ONCE
