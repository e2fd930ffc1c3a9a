#include "kernels/norm.h"

#include <glog/logging.h>

#include <algorithm>
#include <cmath>

#include "kernels/element_type.h"
#include "kernels/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/norm.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace planc::host::HWY_NAMESPACE {

// One row of RMSNorm; returns rstd.
template <typename T>
HWY_INLINE float RmsRowForward(const T* x, const T* weight, size_t n, float epsilon, T* y) {
  LaneSum squares;
  ForEachPart(n, [&](size_t part, size_t i, size_t count) PLANC_INLINE_BODY {
    const FloatVec value = Load(x + i, count);
    squares.AddProduct(part, value, value);
  });
  const float rstd = 1.0f / std::sqrt(squares.Total() / static_cast<float>(n) + epsilon);
  const FloatVec scale = SetAll(rstd);
  ForEachVector(n, [&](size_t i, size_t count) PLANC_INLINE_BODY {
    const FloatVec normalized = hn::Mul(Load(x + i, count), scale);
    Store(hn::Mul(normalized, Load(weight + i, count)), y + i, count);
  });
  return rstd;
}

// Stores dx, or adds to it.
template <typename T>
HWY_INLINE void StoreGradient(FloatVec value, bool accumulate, T* dx, size_t count) {
  Store(accumulate ? hn::Add(Load(dx, count), value) : value, dx, count);
}

// One row of the backward pass; adds the row's share to dweight [n].
template <typename T>
HWY_INLINE void RmsRowBackward(const T* dy, const T* x, const T* weight, size_t n, float rstd,
                               bool accumulate, T* dx, float* dweight) {
  LaneSum products;
  ForEachPart(n, [&](size_t part, size_t i, size_t count) PLANC_INLINE_BODY {
    const FloatVec gradient = hn::Mul(Load(dy + i, count), Load(weight + i, count));
    products.AddProduct(part, gradient, Load(x + i, count));
  });
  const FloatVec scale = SetAll(rstd);
  const FloatVec mean_product = SetAll(rstd * products.Total() / static_cast<float>(n));
  ForEachVector(n, [&](size_t i, size_t count) PLANC_INLINE_BODY {
    const FloatVec upstream = Load(dy + i, count);
    const FloatVec normalized = hn::Mul(Load(x + i, count), scale);
    const FloatVec gradient = hn::Mul(upstream, Load(weight + i, count));
    Store(hn::MulAdd(upstream, normalized, Load(dweight + i, count)), dweight + i, count);
    const FloatVec centered = hn::NegMulAdd(normalized, mean_product, gradient);
    StoreGradient(hn::Mul(centered, scale), accumulate, dx + i, count);
  });
}

template <typename T>
void HeadNormForwardRows(const HeadNormForwardArgs& args, const KernelContext& ctx) {
  const auto* x = static_cast<const T*>(args.x) + args.x_column;
  const auto* weight = static_cast<const T*>(args.weight);
  auto* y = static_cast<T*>(args.y) + args.y_column;
  const int64_t grain = RowGrain(args.heads * args.head_dim);
  ParallelFor(ctx.threads, args.tokens, grain, [&](int64_t begin, int64_t end) HWY_ATTR {
    for (int64_t row = begin; row < end; ++row) {
      for (int64_t head = 0; head < args.heads; ++head) {
        const int64_t column = head * args.head_dim;
        args.rstd[row * args.heads + head] =
            RmsRowForward(x + row * args.x_stride + column, weight, args.head_dim, args.epsilon,
                          y + row * args.y_stride + column);
      }
    }
  });
}

void HeadNormForward(const HeadNormForwardArgs& args, DType dtype, KernelContext& ctx) {
  WithElementType(
      dtype, [&](auto element) HWY_ATTR { HeadNormForwardRows<decltype(element)>(args, ctx); });
}

template <typename T>
void HeadNormBackwardRows(const HeadNormBackwardArgs& args, const KernelContext& ctx) {
  const auto* dy = static_cast<const T*>(args.dy) + args.dy_column;
  const auto* x = static_cast<const T*>(args.x) + args.x_column;
  const auto* weight = static_cast<const T*>(args.weight);
  auto* dx = static_cast<T*>(args.dx) + args.dx_column;
  auto* partial = static_cast<float*>(ctx.workspace);
  const RowBlocks blocks(args.tokens);
  ParallelFor(ctx.threads, blocks.count, 1, [&](int64_t begin, int64_t end) HWY_ATTR {
    for (int64_t block = begin; block < end; ++block) {
      float* dweight = partial + block * args.head_dim;
      std::fill_n(dweight, args.head_dim, 0.0f);
      for (int64_t row = blocks.Begin(block); row < blocks.End(block); ++row) {
        for (int64_t head = 0; head < args.heads; ++head) {
          const int64_t column = head * args.head_dim;
          RmsRowBackward(dy + row * args.dy_stride + column, x + row * args.x_stride + column,
                         weight, args.head_dim, args.rstd[row * args.heads + head],
                         args.accumulate_dx, dx + row * args.dx_stride + column, dweight);
        }
      }
    }
  });
  AddBlocks(partial, blocks.count, args.head_dim, args.head_dim, args.dweight_dtype, args.dweight);
}

void HeadNormBackward(const HeadNormBackwardArgs& args, DType dtype, KernelContext& ctx) {
  CHECK_GE(ctx.workspace_bytes,
           HeadNormBackwardWorkspaceBytes(args.tokens, args.heads, args.head_dim));
  WithElementType(
      dtype, [&](auto element) HWY_ATTR { HeadNormBackwardRows<decltype(element)>(args, ctx); });
}

// One row of LayerNorm; stores its mean and rstd.
template <typename T>
HWY_INLINE void LayerRowForward(const T* x, const T* weight, const T* bias, size_t n, float epsilon,
                                T* y, float* mean, float* rstd) {
  LaneSum sum;
  ForEachPart(n, [&](size_t part, size_t i, size_t count)
                     PLANC_INLINE_BODY { sum.Add(part, Load(x + i, count)); });
  *mean = sum.Total() / static_cast<float>(n);
  const FloatVec center = SetAll(*mean);
  // A second pass over the row, which is in cache, keeps the variance exact when |mean| >> stddev.
  LaneSum squares;
  ForEachPart(n, [&](size_t part, size_t i, size_t count) PLANC_INLINE_BODY {
    const FloatVec value = KeepFirst(hn::Sub(Load(x + i, count), center), count, 0.0f);
    squares.AddProduct(part, value, value);
  });
  *rstd = 1.0f / std::sqrt(squares.Total() / static_cast<float>(n) + epsilon);
  const FloatVec scale = SetAll(*rstd);
  ForEachVector(n, [&](size_t i, size_t count) PLANC_INLINE_BODY {
    const FloatVec normalized = hn::Mul(hn::Sub(Load(x + i, count), center), scale);
    Store(hn::MulAdd(normalized, Load(weight + i, count), Load(bias + i, count)), y + i, count);
  });
}

// One row of the backward pass; adds the row's shares to dweight [n] and dbias [n].
template <typename T>
HWY_INLINE void LayerRowBackward(const T* dy, const T* x, const T* weight, size_t n, float mean,
                                 float rstd, bool accumulate, T* dx, float* dweight, float* dbias) {
  const FloatVec center = SetAll(mean);
  const FloatVec scale = SetAll(rstd);
  LaneSum gradients;
  LaneSum products;
  ForEachPart(n, [&](size_t part, size_t i, size_t count) PLANC_INLINE_BODY {
    const FloatVec gradient = hn::Mul(Load(dy + i, count), Load(weight + i, count));
    gradients.Add(part, gradient);
    products.AddProduct(part, gradient, hn::Mul(hn::Sub(Load(x + i, count), center), scale));
  });
  const FloatVec mean_gradient = SetAll(gradients.Total() / static_cast<float>(n));
  const FloatVec mean_product = SetAll(products.Total() / static_cast<float>(n));
  ForEachVector(n, [&](size_t i, size_t count) PLANC_INLINE_BODY {
    const FloatVec upstream = Load(dy + i, count);
    const FloatVec normalized = hn::Mul(hn::Sub(Load(x + i, count), center), scale);
    const FloatVec gradient = hn::Mul(upstream, Load(weight + i, count));
    Store(hn::MulAdd(upstream, normalized, Load(dweight + i, count)), dweight + i, count);
    Store(hn::Add(upstream, Load(dbias + i, count)), dbias + i, count);
    const FloatVec centered =
        hn::NegMulAdd(normalized, mean_product, hn::Sub(gradient, mean_gradient));
    StoreGradient(hn::Mul(centered, scale), accumulate, dx + i, count);
  });
}

template <typename T>
void LayerNormForwardRows(const LayerNormForwardArgs& args, const KernelContext& ctx) {
  const auto* x = static_cast<const T*>(args.x);
  auto* y = static_cast<T*>(args.y);
  const int64_t grain = RowGrain(args.hidden);
  ParallelFor(ctx.threads, args.tokens, grain, [&](int64_t begin, int64_t end) HWY_ATTR {
    for (int64_t row = begin; row < end; ++row) {
      LayerRowForward(x + row * args.hidden, static_cast<const T*>(args.weight),
                      static_cast<const T*>(args.bias), args.hidden, args.epsilon,
                      y + row * args.hidden, args.mean + row, args.rstd + row);
    }
  });
}

void LayerNormForward(const LayerNormForwardArgs& args, DType dtype, KernelContext& ctx) {
  WithElementType(
      dtype, [&](auto element) HWY_ATTR { LayerNormForwardRows<decltype(element)>(args, ctx); });
}

template <typename T>
void LayerNormBackwardRows(const LayerNormBackwardArgs& args, const KernelContext& ctx) {
  const auto* dy = static_cast<const T*>(args.dy);
  const auto* x = static_cast<const T*>(args.x);
  auto* dx = static_cast<T*>(args.dx);
  const int64_t n = args.hidden;
  auto* partial = static_cast<float*>(ctx.workspace);  // [blocks, 2, H]
  const RowBlocks blocks(args.tokens);
  ParallelFor(ctx.threads, blocks.count, 1, [&](int64_t begin, int64_t end) HWY_ATTR {
    for (int64_t block = begin; block < end; ++block) {
      float* dweight = partial + block * 2 * n;
      std::fill_n(dweight, 2 * n, 0.0f);
      for (int64_t row = blocks.Begin(block); row < blocks.End(block); ++row) {
        LayerRowBackward(dy + row * n, x + row * n, static_cast<const T*>(args.weight), n,
                         args.mean[row], args.rstd[row], args.accumulate_dx, dx + row * n, dweight,
                         dweight + n);
      }
    }
  });
  AddBlocks(partial, blocks.count, 2 * n, n, args.dweight_dtype, args.dweight);
  AddBlocks(partial + n, blocks.count, 2 * n, n, args.dweight_dtype, args.dbias);
}

void LayerNormBackward(const LayerNormBackwardArgs& args, DType dtype, KernelContext& ctx) {
  CHECK_GE(ctx.workspace_bytes, LayerNormBackwardWorkspaceBytes(args.tokens, args.hidden));
  WithElementType(
      dtype, [&](auto element) HWY_ATTR { LayerNormBackwardRows<decltype(element)>(args, ctx); });
}

}  // namespace planc::host::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace planc::host {

HWY_EXPORT(HeadNormForward);
HWY_EXPORT(HeadNormBackward);
HWY_EXPORT(LayerNormForward);
HWY_EXPORT(LayerNormBackward);

void HeadNormForward(const HeadNormForwardArgs& args, DType dtype, KernelContext& ctx) {
  HWY_DYNAMIC_DISPATCH(HeadNormForward)(args, dtype, ctx);
}

void HeadNormBackward(const HeadNormBackwardArgs& args, DType dtype, KernelContext& ctx) {
  HWY_DYNAMIC_DISPATCH(HeadNormBackward)(args, dtype, ctx);
}

void RmsNormForward(const RmsNormForwardArgs& args, DType dtype, KernelContext& ctx) {
  const HeadNormForwardArgs head = {.tokens = args.tokens,
                                    .heads = 1,
                                    .head_dim = args.hidden,
                                    .epsilon = args.epsilon,
                                    .x = args.x,
                                    .x_stride = args.hidden,
                                    .weight = args.weight,
                                    .y = args.y,
                                    .y_stride = args.hidden,
                                    .rstd = args.rstd};
  HeadNormForward(head, dtype, ctx);
}

void RmsNormBackward(const RmsNormBackwardArgs& args, DType dtype, KernelContext& ctx) {
  const HeadNormBackwardArgs head = {.tokens = args.tokens,
                                     .heads = 1,
                                     .head_dim = args.hidden,
                                     .dy = args.dy,
                                     .dy_stride = args.hidden,
                                     .x = args.x,
                                     .x_stride = args.hidden,
                                     .weight = args.weight,
                                     .rstd = args.rstd,
                                     .dx = args.dx,
                                     .dx_stride = args.hidden,
                                     .accumulate_dx = args.accumulate_dx,
                                     .dweight = args.dweight,
                                     .dweight_dtype = args.dweight_dtype};
  HeadNormBackward(head, dtype, ctx);
}

void LayerNormForward(const LayerNormForwardArgs& args, DType dtype, KernelContext& ctx) {
  HWY_DYNAMIC_DISPATCH(LayerNormForward)(args, dtype, ctx);
}

void LayerNormBackward(const LayerNormBackwardArgs& args, DType dtype, KernelContext& ctx) {
  HWY_DYNAMIC_DISPATCH(LayerNormBackward)(args, dtype, ctx);
}

size_t HeadNormBackwardWorkspaceBytes(int64_t tokens, int64_t /*heads*/, int64_t head_dim) {
  return static_cast<size_t>(RowBlocks::Count(tokens) * head_dim) * sizeof(float);
}

size_t RmsNormBackwardWorkspaceBytes(int64_t tokens, int64_t hidden) {
  return HeadNormBackwardWorkspaceBytes(tokens, 1, hidden);
}

size_t LayerNormBackwardWorkspaceBytes(int64_t tokens, int64_t hidden) {
  return 2 * HeadNormBackwardWorkspaceBytes(tokens, 1, hidden);
}

}  // namespace planc::host
#endif  // HWY_ONCE
