#include "kernels/cross_entropy.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/element_type.h"
#include "kernels/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cross_entropy.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace planc::host::HWY_NAMESPACE {

template <typename T>
HWY_INLINE float RowMax(const T* logits, size_t n) {
  constexpr float kLowest = -std::numeric_limits<float>::infinity();
  FloatVec parts[kParts];
  for (FloatVec& part : parts) part = SetAll(kLowest);
  // The maximum instruction drops NaNs: collect them apart.
  FloatVec nans = SetAll(0.0f);
  ForEachPart(n, [&](size_t part, size_t i, size_t count) PLANC_INLINE_BODY {
    const FloatVec value = KeepFirst(Load(logits + i, count), count, kLowest);
    parts[part] = hn::Max(parts[part], value);
    nans = hn::Or(nans, hn::VecFromMask(FloatTag(), hn::IsNaN(value)));
  });
  if (!hn::AllFalse(FloatTag(), hn::MaskFromVec(nans))) {
    return std::numeric_limits<float>::quiet_NaN();
  }
  FloatVec maximum = parts[0];
  for (size_t part = 1; part < kParts; ++part) maximum = hn::Max(maximum, parts[part]);
  // Which of two zeros is the larger one depends on the order: the sum with +0 is +0 for both.
  return hn::GetLane(hn::MaxOfLanes(FloatTag(), maximum)) + 0.0f;
}

template <typename T>
void LogitsMaxRows(const LogitsMaxArgs& args, const KernelContext& ctx) {
  const auto* logits = static_cast<const T*>(args.logits);
  const int64_t grain = RowGrain(args.columns);
  ParallelFor(ctx.threads, args.tokens, grain, [&](int64_t begin, int64_t end) HWY_ATTR {
    for (int64_t row = begin; row < end; ++row) {
      args.maximum[row] = RowMax(logits + row * args.columns, args.valid_columns);
    }
  });
}

void LogitsMax(const LogitsMaxArgs& args, DType dtype, KernelContext& ctx) {
  WithElementType(dtype,
                  [&](auto element) HWY_ATTR { LogitsMaxRows<decltype(element)>(args, ctx); });
}

template <typename T>
HWY_INLINE float RowSumExp(const T* logits, size_t n, float maximum) {
  const FloatVec shift = SetAll(maximum);
  LaneSum sum;
  ForEachPart(n, [&](size_t part, size_t i, size_t count) PLANC_INLINE_BODY {
    const FloatVec term = Exp(hn::Sub(Load(logits + i, count), shift));
    sum.Add(part, KeepFirst(term, count, 0.0f));
  });
  return sum.Total();
}

// The local column of the row's target, or -1.
HWY_INLINE int64_t TargetColumn(int32_t target, int64_t vocab_begin, int64_t valid_columns) {
  const int64_t column = target - vocab_begin;
  const bool is_local = target >= 0 && column >= 0 && column < valid_columns;
  return is_local ? column : -1;
}

template <typename T>
void SumExpRows(const SumExpArgs& args, const KernelContext& ctx) {
  const int64_t grain = RowGrain(args.columns);
  ParallelFor(ctx.threads, args.tokens, grain, [&](int64_t begin, int64_t end) HWY_ATTR {
    for (int64_t row = begin; row < end; ++row) {
      const T* logits = static_cast<const T*>(args.logits) + row * args.columns;
      const int64_t target = TargetColumn(args.targets[row], args.vocab_begin, args.valid_columns);
      args.pair[2 * row] = RowSumExp(logits, args.valid_columns, args.maximum[row]);
      args.pair[2 * row + 1] = target >= 0 ? ToFloat(logits[target]) : 0.0f;
    }
  });
}

void SumExp(const SumExpArgs& args, DType dtype, KernelContext& ctx) {
  WithElementType(dtype, [&](auto element) HWY_ATTR { SumExpRows<decltype(element)>(args, ctx); });
}

// Gradient of one row: scale * (softmax - one-hot). dlogits may be logits.
template <typename T>
HWY_INLINE void RowGradient(const T* logits, size_t n, float maximum, float sum, float scale,
                            int64_t target, T* dlogits) {
  const FloatVec shift = SetAll(maximum);
  const FloatVec factor = SetAll(scale / sum);
  // Formed before the row is overwritten, and rounded once.
  FloatVec at_target = hn::Zero(FloatTag());
  if (target >= 0) {
    const FloatVec term = Exp(hn::Sub(SetAll(ToFloat(logits[target])), shift));
    at_target = hn::Sub(hn::Mul(term, factor), SetAll(scale));
  }
  ForEachVector(n, [&](size_t i, size_t count) PLANC_INLINE_BODY {
    const FloatVec term = Exp(hn::Sub(Load(logits + i, count), shift));
    Store(hn::Mul(term, factor), dlogits + i, count);
  });
  if (target >= 0) dlogits[target] = FromFloat<T>(hn::GetLane(at_target));
}

template <typename T>
void LossGradRows(const LossGradArgs& args, const KernelContext& ctx) {
  const int64_t grain = RowGrain(args.columns);
  ParallelFor(ctx.threads, args.tokens, grain, [&](int64_t begin, int64_t end) HWY_ATTR {
    for (int64_t row = begin; row < end; ++row) {
      T* dlogits = static_cast<T*>(args.dlogits) + row * args.columns;
      const bool is_ignored = args.targets[row] == kIgnoredTarget;
      const int64_t written = is_ignored ? 0 : args.valid_columns;
      const int64_t target = TargetColumn(args.targets[row], args.vocab_begin, args.valid_columns);
      RowGradient(static_cast<const T*>(args.logits) + row * args.columns, written,
                  args.maximum[row], args.pair[2 * row], args.scale, target, dlogits);
      std::fill(dlogits + written, dlogits + args.columns, T{});
    }
  });
}

void LossGrad(const LossGradArgs& args, DType dtype, KernelContext& ctx) {
  WithElementType(dtype,
                  [&](auto element) HWY_ATTR { LossGradRows<decltype(element)>(args, ctx); });
}

}  // namespace planc::host::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace planc::host {

HWY_EXPORT(LossGrad);
HWY_EXPORT(LogitsMax);
HWY_EXPORT(SumExp);

void LogitsMax(const LogitsMaxArgs& args, DType dtype, KernelContext& ctx) {
  HWY_DYNAMIC_DISPATCH(LogitsMax)(args, dtype, ctx);
}

void SumExp(const SumExpArgs& args, DType dtype, KernelContext& ctx) {
  HWY_DYNAMIC_DISPATCH(SumExp)(args, dtype, ctx);
}

void Loss(const LossArgs& args, KernelContext& /*ctx*/) {
  double sum = 0;
  for (int64_t row = 0; row < args.tokens; ++row) {
    if (args.targets[row] == kIgnoredTarget) continue;
    const double log_sum = std::log(static_cast<double>(args.pair[2 * row]));
    // The difference first: it is exact, and large logits would swallow the logarithm.
    const double target_below = static_cast<double>(args.maximum[row]) - args.pair[2 * row + 1];
    sum += log_sum + target_below;
  }
  *args.loss += static_cast<float>(sum * args.scale);
}

void LossGrad(const LossGradArgs& args, DType dtype, KernelContext& ctx) {
  HWY_DYNAMIC_DISPATCH(LossGrad)(args, dtype, ctx);
  const LossArgs loss = {.tokens = args.tokens,
                         .scale = args.scale,
                         .maximum = args.maximum,
                         .pair = args.pair,
                         .targets = args.targets,
                         .loss = args.loss};
  Loss(loss, ctx);
}

}  // namespace planc::host
#endif  // HWY_ONCE
