#include "kernels/elementwise.h"

#include <glog/logging.h>

#include <algorithm>
#include <cstring>

#include "kernels/element_type.h"
#include "kernels/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace planc::host::HWY_NAMESPACE {

template <typename T>
void AddRows(const AddArgs& args, const KernelContext& ctx) {
  const auto* a = static_cast<const T*>(args.a);
  const auto* b = static_cast<const T*>(args.b);
  auto* c = static_cast<T*>(args.c);
  ParallelElements(ctx.threads, args.elements, [&](int64_t begin, int64_t end) HWY_ATTR {
    ForEachVector(end - begin, [&](size_t i, size_t count) PLANC_INLINE_BODY {
      const FloatVec sum = hn::Add(Load(a + begin + i, count), Load(b + begin + i, count));
      Store(sum, c + begin + i, count);
    });
  });
}

void Add(const AddArgs& args, DType dtype, KernelContext& ctx) {
  WithElementType(dtype, [&](auto element) HWY_ATTR { AddRows<decltype(element)>(args, ctx); });
}

template <typename T>
void BiasForwardRows(const BiasForwardArgs& args, const KernelContext& ctx) {
  const auto* bias = static_cast<const T*>(args.bias);
  auto* y = static_cast<T*>(args.y);
  const int64_t grain = RowGrain(args.columns);
  ParallelFor(ctx.threads, args.tokens, grain, [&](int64_t begin, int64_t end) HWY_ATTR {
    for (int64_t row = begin; row < end; ++row) AddRow(bias, args.columns, y + row * args.columns);
  });
}

void BiasForward(const BiasForwardArgs& args, DType dtype, KernelContext& ctx) {
  WithElementType(dtype,
                  [&](auto element) HWY_ATTR { BiasForwardRows<decltype(element)>(args, ctx); });
}

template <typename T>
void BiasBackwardRows(const BiasBackwardArgs& args, const KernelContext& ctx) {
  const auto* dy = static_cast<const T*>(args.dy);
  auto* partial = static_cast<float*>(ctx.workspace);  // [blocks, N]
  const RowBlocks blocks(args.tokens);
  ParallelFor(ctx.threads, blocks.count, 1, [&](int64_t begin, int64_t end) HWY_ATTR {
    for (int64_t block = begin; block < end; ++block) {
      float* sum = partial + block * args.columns;
      std::fill_n(sum, args.columns, 0.0f);
      for (int64_t row = blocks.Begin(block); row < blocks.End(block); ++row) {
        AddRow(dy + row * args.columns, args.columns, sum);
      }
    }
  });
  AddBlocks(partial, blocks.count, args.columns, args.columns, args.dbias_dtype, args.dbias);
}

void BiasBackward(const BiasBackwardArgs& args, DType dtype, KernelContext& ctx) {
  WithElementType(dtype,
                  [&](auto element) HWY_ATTR { BiasBackwardRows<decltype(element)>(args, ctx); });
}

template <typename From, typename To>
void CastElements(const CastArgs& args, const KernelContext& ctx) {
  const auto* from = static_cast<const From*>(args.source);
  auto* to = static_cast<To*>(args.destination);
  ParallelElements(ctx.threads, args.elements, [&](int64_t begin, int64_t end) HWY_ATTR {
    ForEachVector(end - begin, [&](size_t i, size_t count) PLANC_INLINE_BODY {
      Store(Load(from + begin + i, count), to + begin + i, count);
    });
  });
}

void Cast(const CastArgs& args, KernelContext& ctx) {
  WithElementType(args.source_dtype, [&](auto from) {
    WithElementType(args.destination_dtype,
                    [&](auto to) { CastElements<decltype(from), decltype(to)>(args, ctx); });
  });
}

template <typename From, typename To>
void AccumulateElements(const AccumulateArgs& args, const KernelContext& ctx) {
  const auto* from = static_cast<const From*>(args.source);
  auto* to = static_cast<To*>(args.destination);
  ParallelElements(ctx.threads, args.elements, [&](int64_t begin, int64_t end) HWY_ATTR {
    AddRow(from + begin, end - begin, to + begin);
  });
}

void Accumulate(const AccumulateArgs& args, KernelContext& ctx) {
  WithElementType(args.source_dtype, [&](auto from) {
    WithElementType(args.destination_dtype,
                    [&](auto to) { AccumulateElements<decltype(from), decltype(to)>(args, ctx); });
  });
}

template <typename T>
void ScaleRows(const ScaleArgs& args, const KernelContext& ctx) {
  auto* x = static_cast<T*>(args.x);
  ParallelElements(ctx.threads, args.elements, [&](int64_t begin, int64_t end) HWY_ATTR {
    ForEachVector(end - begin, [&](size_t i, size_t count) PLANC_INLINE_BODY {
      Store(hn::Mul(Load(x + begin + i, count), SetAll(args.factor)), x + begin + i, count);
    });
  });
}

void Scale(const ScaleArgs& args, DType dtype, KernelContext& ctx) {
  WithElementType(dtype, [&](auto element) HWY_ATTR { ScaleRows<decltype(element)>(args, ctx); });
}

}  // namespace planc::host::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace planc::host {

HWY_EXPORT(Add);
HWY_EXPORT(BiasForward);
HWY_EXPORT(Scale);

void Add(const AddArgs& args, DType dtype, KernelContext& ctx) {
  HWY_DYNAMIC_DISPATCH(Add)(args, dtype, ctx);
}

void BiasForward(const BiasForwardArgs& args, DType dtype, KernelContext& ctx) {
  HWY_DYNAMIC_DISPATCH(BiasForward)(args, dtype, ctx);
}

void Scale(const ScaleArgs& args, DType dtype, KernelContext& ctx) {
  HWY_DYNAMIC_DISPATCH(Scale)(args, dtype, ctx);
}

HWY_EXPORT(BiasBackward);
HWY_EXPORT(Cast);
HWY_EXPORT(Accumulate);

void Cast(const CastArgs& args, KernelContext& ctx) { HWY_DYNAMIC_DISPATCH(Cast)(args, ctx); }

void Accumulate(const AccumulateArgs& args, KernelContext& ctx) {
  HWY_DYNAMIC_DISPATCH(Accumulate)(args, ctx);
}

void BiasBackward(const BiasBackwardArgs& args, DType dtype, KernelContext& ctx) {
  CHECK_GE(ctx.workspace_bytes, BiasBackwardWorkspaceBytes(args.tokens, args.columns));
  HWY_DYNAMIC_DISPATCH(BiasBackward)(args, dtype, ctx);
}

size_t BiasBackwardWorkspaceBytes(int64_t tokens, int64_t columns) {
  return static_cast<size_t>(RowBlocks::Count(tokens) * columns) * sizeof(float);
}

void CopyColumns(const CopyColumnsArgs& args, DType dtype, KernelContext& ctx) {
  const int64_t size = SizeOf(dtype);
  const auto* x = static_cast<const char*>(args.x) + args.x_column * size;
  auto* y = static_cast<char*>(args.y) + args.y_column * size;
  ParallelFor(ctx.threads, args.tokens, RowGrain(args.columns), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      std::memcpy(y + row * args.y_stride * size, x + row * args.x_stride * size,
                  static_cast<size_t>(args.columns * size));
    }
  });
}

void Zero(void* destination, size_t bytes, KernelContext& ctx) {
  constexpr int64_t kGrain = 1 << 20;
  auto* to = static_cast<char*>(destination);
  ParallelFor(ctx.threads, static_cast<int64_t>(bytes), kGrain, [&](int64_t begin, int64_t end) {
    std::memset(to + begin, 0, static_cast<size_t>(end - begin));
  });
}

}  // namespace planc::host
#endif  // HWY_ONCE
