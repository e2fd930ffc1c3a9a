#include "kernels/activation.h"

#include "kernels/element_type.h"
#include "kernels/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/activation.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace planc::host::HWY_NAMESPACE {

template <typename T>
void SwiGluForwardRows(const SwiGluForwardArgs& args, const KernelContext& ctx) {
  const int64_t grain = RowGrain(args.ffn);
  ParallelFor(ctx.threads, args.tokens, grain, [&](int64_t begin, int64_t end) HWY_ATTR {
    for (int64_t row = begin; row < end; ++row) {
      const T* gate = static_cast<const T*>(args.gate_up) + row * 2 * args.ffn;
      const T* up = gate + args.ffn;
      T* s = static_cast<T*>(args.s) + row * args.ffn;
      ForEachVector(args.ffn, [&](size_t i, size_t count) PLANC_INLINE_BODY {
        const FloatVec g = Load(gate + i, count);
        Store(hn::Mul(hn::Mul(g, Sigmoid(g)), Load(up + i, count)), s + i, count);
      });
    }
  });
}

void SwiGluForward(const SwiGluForwardArgs& args, DType dtype, KernelContext& ctx) {
  WithElementType(dtype,
                  [&](auto element) HWY_ATTR { SwiGluForwardRows<decltype(element)>(args, ctx); });
}

template <typename T>
void SwiGluBackwardRows(const SwiGluBackwardArgs& args, const KernelContext& ctx) {
  const FloatVec one = SetAll(1.0f);
  const int64_t grain = RowGrain(args.ffn);
  ParallelFor(ctx.threads, args.tokens, grain, [&](int64_t begin, int64_t end) HWY_ATTR {
    for (int64_t row = begin; row < end; ++row) {
      const T* gate = static_cast<const T*>(args.gate_up) + row * 2 * args.ffn;
      const T* up = gate + args.ffn;
      const T* ds = static_cast<const T*>(args.ds) + row * args.ffn;
      T* dgate = static_cast<T*>(args.dgate_up) + row * 2 * args.ffn;
      T* dup = dgate + args.ffn;
      ForEachVector(args.ffn, [&](size_t i, size_t count) PLANC_INLINE_BODY {
        const FloatVec g = Load(gate + i, count);
        const FloatVec upstream = Load(ds + i, count);
        const FloatVec sigmoid = Sigmoid(g);
        const FloatVec slope = hn::Mul(sigmoid, hn::MulAdd(g, hn::Sub(one, sigmoid), one));
        const FloatVec gate_gradient = hn::Mul(hn::Mul(upstream, Load(up + i, count)), slope);
        Store(gate_gradient, dgate + i, count);
        Store(hn::Mul(upstream, hn::Mul(g, sigmoid)), dup + i, count);
      });
    }
  });
}

void SwiGluBackward(const SwiGluBackwardArgs& args, DType dtype, KernelContext& ctx) {
  WithElementType(dtype,
                  [&](auto element) HWY_ATTR { SwiGluBackwardRows<decltype(element)>(args, ctx); });
}

// 2 * sqrt(2 / pi), and the cubic coefficient of GELU's tanh form.
inline constexpr float kGeluScale = 1.5957691216057308f;
inline constexpr float kGeluCubic = 0.044715f;

// (1 + tanh(u)) / 2 with u = sqrt(2/pi) (x + 0.044715 x^3); it equals sigmoid(2u).
HWY_INLINE FloatVec GeluGate(FloatVec x) {
  const FloatVec cubic = hn::MulAdd(hn::Mul(x, x), SetAll(kGeluCubic), SetAll(1.0f));
  return Sigmoid(hn::Mul(hn::Mul(x, SetAll(kGeluScale)), cubic));
}

template <typename T>
void GeluForwardRows(const GeluForwardArgs& args, const KernelContext& ctx) {
  const auto* x = static_cast<const T*>(args.x);
  auto* y = static_cast<T*>(args.y);
  ParallelElements(ctx.threads, args.elements, [&](int64_t begin, int64_t end) HWY_ATTR {
    ForEachVector(end - begin, [&](size_t i, size_t count) PLANC_INLINE_BODY {
      const FloatVec value = Load(x + begin + i, count);
      Store(hn::Mul(value, GeluGate(value)), y + begin + i, count);
    });
  });
}

void GeluForward(const GeluForwardArgs& args, DType dtype, KernelContext& ctx) {
  WithElementType(dtype,
                  [&](auto element) HWY_ATTR { GeluForwardRows<decltype(element)>(args, ctx); });
}

// d GELU / dx = gate + x * gate * (1 - gate) * d(2u)/dx.
HWY_INLINE FloatVec GeluSlope(FloatVec x) {
  // Beyond |x| = 30 the slope is exactly 0 or 1 in fp32; the bound keeps infinity * 0 out of it.
  const FloatVec bounded = hn::Max(hn::Min(x, SetAll(30.0f)), SetAll(-30.0f));
  const FloatVec gate = GeluGate(bounded);
  const FloatVec square = hn::Mul(bounded, bounded);
  const FloatVec inner =
      hn::Mul(SetAll(kGeluScale), hn::MulAdd(square, SetAll(3 * kGeluCubic), SetAll(1.0f)));
  const FloatVec gate_slope = hn::Mul(gate, hn::Sub(SetAll(1.0f), gate));
  const FloatVec slope = hn::MulAdd(hn::Mul(bounded, gate_slope), inner, gate);
  return hn::IfThenElse(hn::IsNaN(x), x, slope);
}

template <typename T>
void GeluBackwardRows(const GeluBackwardArgs& args, const KernelContext& ctx) {
  const auto* x = static_cast<const T*>(args.x);
  const auto* dy = static_cast<const T*>(args.dy);
  auto* dx = static_cast<T*>(args.dx);
  ParallelElements(ctx.threads, args.elements, [&](int64_t begin, int64_t end) HWY_ATTR {
    ForEachVector(end - begin, [&](size_t i, size_t count) PLANC_INLINE_BODY {
      const FloatVec slope = GeluSlope(Load(x + begin + i, count));
      Store(hn::Mul(slope, Load(dy + begin + i, count)), dx + begin + i, count);
    });
  });
}

void GeluBackward(const GeluBackwardArgs& args, DType dtype, KernelContext& ctx) {
  WithElementType(dtype,
                  [&](auto element) HWY_ATTR { GeluBackwardRows<decltype(element)>(args, ctx); });
}

}  // namespace planc::host::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace planc::host {

HWY_EXPORT(SwiGluForward);
HWY_EXPORT(SwiGluBackward);
HWY_EXPORT(GeluForward);
HWY_EXPORT(GeluBackward);

void SwiGluForward(const SwiGluForwardArgs& args, DType dtype, KernelContext& ctx) {
  HWY_DYNAMIC_DISPATCH(SwiGluForward)(args, dtype, ctx);
}

void SwiGluBackward(const SwiGluBackwardArgs& args, DType dtype, KernelContext& ctx) {
  HWY_DYNAMIC_DISPATCH(SwiGluBackward)(args, dtype, ctx);
}

void GeluForward(const GeluForwardArgs& args, DType dtype, KernelContext& ctx) {
  HWY_DYNAMIC_DISPATCH(GeluForward)(args, dtype, ctx);
}

void GeluBackward(const GeluBackwardArgs& args, DType dtype, KernelContext& ctx) {
  HWY_DYNAMIC_DISPATCH(GeluBackward)(args, dtype, ctx);
}

}  // namespace planc::host
#endif  // HWY_ONCE
