#include "kernels/optimizer.h"

#include <algorithm>
#include <cmath>

#include "kernels/element_type.h"
#include "kernels/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/optimizer.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace planc::host::HWY_NAMESPACE {

using DoubleTag = hn::ScalableTag<double>;
using DoubleVec = hn::Vec<DoubleTag>;

// Sum of squares of one range, in kSumLanes double lanes.
template <typename T>
HWY_INLINE double RangeSumSquares(const T* gradient, size_t n) {
  const DoubleTag tag;
  const hn::Half<FloatTag> half_tag;
  DoubleVec lower[kParts];
  DoubleVec upper[kParts];
  for (size_t part = 0; part < kParts; ++part) lower[part] = upper[part] = hn::Zero(tag);
  ForEachPart(n, [&](size_t part, size_t i, size_t count) PLANC_INLINE_BODY {
    const FloatVec value = Load(gradient + i, count);
    const DoubleVec low = hn::PromoteTo(tag, hn::LowerHalf(half_tag, value));
    const DoubleVec high = hn::PromoteTo(tag, hn::UpperHalf(half_tag, value));
    lower[part] = hn::MulAdd(low, low, lower[part]);
    upper[part] = hn::MulAdd(high, high, upper[part]);
  });
  double lanes[kSumLanes];
  for (size_t part = 0; part < kParts; ++part) {
    hn::StoreU(lower[part], tag, lanes + part * kLanes);
    hn::StoreU(upper[part], tag, lanes + part * kLanes + kLanes / 2);
  }
  return FoldLanes(lanes);
}

template <typename T>
void SumSquaresRows(const SumSquaresArgs& args, const KernelContext& ctx) {
  const auto* gradient = static_cast<const T*>(args.gradient);
  // The cut of the range: a function of its length alone, whatever the number of threads.
  constexpr int64_t kMaxBlocks = 64;
  constexpr int64_t kMinBlock = 16384;
  const int64_t blocks = std::clamp<int64_t>(args.elements / kMinBlock, 1, kMaxBlocks);
  double sums[kMaxBlocks];
  ParallelFor(ctx.threads, blocks, 1, [&](int64_t begin, int64_t end) HWY_ATTR {
    for (int64_t block = begin; block < end; ++block) {
      const int64_t first = args.elements * block / blocks;
      const int64_t last = args.elements * (block + 1) / blocks;
      sums[block] = RangeSumSquares(gradient + first, last - first);
    }
  });
  double total = 0;
  for (int64_t block = 0; block < blocks; ++block) total += sums[block];
  *args.sum += total;
}

void SumSquares(const SumSquaresArgs& args, DType dtype, KernelContext& ctx) {
  WithElementType(dtype,
                  [&](auto element) HWY_ATTR { SumSquaresRows<decltype(element)>(args, ctx); });
}

// The scalars of one update, formed in double.
struct AdamWScalars {
  explicit AdamWScalars(const AdamWArgs& args)
      : coefficient(args.coefficient == nullptr ? 1.0f : *args.coefficient),
        decay(static_cast<float>(1 - args.lr * args.weight_decay)),
        beta1(static_cast<float>(args.beta1)),
        one_minus_beta1(static_cast<float>(1 - args.beta1)),
        beta2(static_cast<float>(args.beta2)),
        one_minus_beta2(static_cast<float>(1 - args.beta2)),
        step_size(static_cast<float>(args.lr / (1 - std::pow(args.beta1, args.step)))),
        root_correction2(static_cast<float>(std::sqrt(1 - std::pow(args.beta2, args.step)))),
        epsilon(static_cast<float>(args.epsilon)) {}

  float coefficient;
  float decay;
  float beta1;
  float one_minus_beta1;
  float beta2;
  float one_minus_beta2;
  float step_size;
  float root_correction2;
  float epsilon;
};

// One vector of the update; returns the new parameters.
template <typename Gradient, typename State>
HWY_INLINE FloatVec AdamWVector(const AdamWScalars& s, const Gradient* gradient, State* first,
                                State* second, const float* master, size_t count) {
  const FloatVec g = hn::Mul(Load(gradient, count), SetAll(s.coefficient));
  const FloatVec decayed = hn::Mul(Load(master, count), SetAll(s.decay));
  const FloatVec m =
      hn::MulAdd(SetAll(s.beta1), Load(first, count), hn::Mul(SetAll(s.one_minus_beta1), g));
  const FloatVec v = hn::MulAdd(SetAll(s.beta2), Load(second, count),
                                hn::Mul(hn::Mul(SetAll(s.one_minus_beta2), g), g));
  Store(m, first, count);
  Store(v, second, count);
  const FloatVec root = hn::Div(hn::Sqrt(v), SetAll(s.root_correction2));
  const FloatVec update = hn::Div(m, hn::Add(root, SetAll(s.epsilon)));
  return hn::NegMulAdd(SetAll(s.step_size), update, decayed);
}

template <typename Gradient, typename State, typename Compute>
void AdamWElements(const AdamWArgs& args, const KernelContext& ctx) {
  const AdamWScalars scalars(args);
  const auto* gradient = static_cast<const Gradient*>(args.gradient);
  auto* first = static_cast<State*>(args.first_moment);
  auto* second = static_cast<State*>(args.second_moment);
  auto* copy = static_cast<Compute*>(args.compute_copy);
  ParallelElements(ctx.threads, args.elements, [&](int64_t begin, int64_t end) HWY_ATTR {
    ForEachVector(end - begin, [&](size_t offset, size_t count) PLANC_INLINE_BODY {
      const int64_t i = begin + static_cast<int64_t>(offset);
      const FloatVec parameters =
          AdamWVector(scalars, gradient + i, first + i, second + i, args.master + i, count);
      Store(parameters, args.master + i, count);
      if (copy != nullptr) Store(parameters, copy + i, count);
    });
  });
}

void AdamW(const AdamWArgs& args, KernelContext& ctx) {
  WithElementType(args.gradient_dtype, [&](auto gradient) {
    WithElementType(args.state_dtype, [&](auto state) {
      WithElementType(args.compute_dtype, [&](auto compute) {
        AdamWElements<decltype(gradient), decltype(state), decltype(compute)>(args, ctx);
      });
    });
  });
}

}  // namespace planc::host::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace planc::host {

HWY_EXPORT(AdamW);
HWY_EXPORT(SumSquares);

void SumSquares(const SumSquaresArgs& args, DType dtype, KernelContext& ctx) {
  HWY_DYNAMIC_DISPATCH(SumSquares)(args, dtype, ctx);
}

void AdamW(const AdamWArgs& args, KernelContext& ctx) { HWY_DYNAMIC_DISPATCH(AdamW)(args, ctx); }

void ClipCoefficient(const ClipCoefficientArgs& args, KernelContext& /*ctx*/) {
  const double norm = std::sqrt(*args.sum_squares);
  const bool is_finite = std::isfinite(norm);
  const bool is_clipped = is_finite && args.clip_norm > 0 && norm > args.clip_norm;
  *args.norm = static_cast<float>(norm);
  *args.coefficient = is_clipped ? static_cast<float>(args.clip_norm / (norm + 1e-6)) : 1.0f;
  *args.nonfinite = is_finite ? 0 : 1;
}

}  // namespace planc::host
#endif  // HWY_ONCE
