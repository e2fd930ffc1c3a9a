#include "kernels/embedding.h"

#include <algorithm>
#include <cstring>

#include "kernels/element_type.h"
#include "kernels/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/embedding.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace planc::host::HWY_NAMESPACE {

template <typename T>
void EmbeddingForwardRows(const EmbeddingForwardArgs& args, const KernelContext& ctx) {
  const auto* table = static_cast<const T*>(args.table);
  auto* x = static_cast<T*>(args.x);
  const size_t row_bytes = args.hidden * sizeof(T);
  ParallelFor(ctx.threads, args.tokens, RowGrain(args.hidden), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t local = args.token_ids[row] - args.vocab_begin;
      const bool is_local = local >= 0 && local < args.vocab_rows;
      T* to = x + row * args.hidden;
      if (is_local) {
        std::memcpy(to, table + local * args.hidden, row_bytes);
      } else {
        std::memset(to, 0, row_bytes);
      }
    }
  });
}

void EmbeddingForward(const EmbeddingForwardArgs& args, DType dtype, KernelContext& ctx) {
  WithElementType(
      dtype, [&](auto element) HWY_ATTR { EmbeddingForwardRows<decltype(element)>(args, ctx); });
}

// Calls body(begin, end) on ranges of columns. Threads that share out the columns of a scatter,
// rather than its rows, each add in the order of the rows.
void ParallelColumns(int threads, int64_t rows, int64_t columns,
                     absl::FunctionRef<void(int64_t begin, int64_t end)> body) {
  constexpr int64_t kBlock = 64;
  ParallelFor(
      threads, (columns + kBlock - 1) / kBlock, RowGrain(rows * kBlock),
      [&](int64_t begin, int64_t end) { body(begin * kBlock, std::min(columns, end * kBlock)); });
}

template <typename T, typename Gradient>
void EmbeddingBackwardColumns(const EmbeddingBackwardArgs& args, const KernelContext& ctx) {
  const auto* dx = static_cast<const T*>(args.dx);
  auto* dtable = static_cast<Gradient*>(args.dtable);
  ParallelColumns(ctx.threads, args.tokens, args.hidden, [&](int64_t begin, int64_t end) HWY_ATTR {
    for (int64_t row = 0; row < args.tokens; ++row) {
      const int64_t local = args.token_ids[row] - args.vocab_begin;
      if (local < 0 || local >= args.vocab_rows) continue;
      AddRow(dx + row * args.hidden + begin, end - begin, dtable + local * args.hidden + begin);
    }
  });
}

void EmbeddingBackward(const EmbeddingBackwardArgs& args, DType dtype, KernelContext& ctx) {
  WithElementType(dtype, [&](auto element) {
    WithElementType(args.dtable_dtype, [&](auto gradient) {
      EmbeddingBackwardColumns<decltype(element), decltype(gradient)>(args, ctx);
    });
  });
}

template <typename T>
void PositionForwardRows(const PositionForwardArgs& args, const KernelContext& ctx) {
  const auto* table = static_cast<const T*>(args.table);
  auto* x = static_cast<T*>(args.x);
  const int64_t grain = RowGrain(args.hidden);
  ParallelFor(ctx.threads, args.tokens, grain, [&](int64_t begin, int64_t end) HWY_ATTR {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t position = args.first_position + (args.first_row + row) % args.sequence;
      AddRow(table + position * args.hidden, args.hidden, x + row * args.hidden);
    }
  });
}

void PositionForward(const PositionForwardArgs& args, DType dtype, KernelContext& ctx) {
  WithElementType(
      dtype, [&](auto element) HWY_ATTR { PositionForwardRows<decltype(element)>(args, ctx); });
}

template <typename T, typename Gradient>
void PositionBackwardColumns(const PositionBackwardArgs& args, const KernelContext& ctx) {
  const auto* dx = static_cast<const T*>(args.dx);
  auto* dtable = static_cast<Gradient*>(args.dtable);
  ParallelColumns(ctx.threads, args.tokens, args.hidden, [&](int64_t begin, int64_t end) HWY_ATTR {
    for (int64_t row = 0; row < args.tokens; ++row) {
      const int64_t position = args.first_position + (args.first_row + row) % args.sequence;
      AddRow(dx + row * args.hidden + begin, end - begin, dtable + position * args.hidden + begin);
    }
  });
}

void PositionBackward(const PositionBackwardArgs& args, DType dtype, KernelContext& ctx) {
  WithElementType(dtype, [&](auto element) {
    WithElementType(args.dtable_dtype, [&](auto gradient) {
      PositionBackwardColumns<decltype(element), decltype(gradient)>(args, ctx);
    });
  });
}

}  // namespace planc::host::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace planc::host {

HWY_EXPORT(EmbeddingForward);
HWY_EXPORT(EmbeddingBackward);
HWY_EXPORT(PositionForward);
HWY_EXPORT(PositionBackward);

void EmbeddingForward(const EmbeddingForwardArgs& args, DType dtype, KernelContext& ctx) {
  HWY_DYNAMIC_DISPATCH(EmbeddingForward)(args, dtype, ctx);
}

void EmbeddingBackward(const EmbeddingBackwardArgs& args, DType dtype, KernelContext& ctx) {
  HWY_DYNAMIC_DISPATCH(EmbeddingBackward)(args, dtype, ctx);
}

void PositionForward(const PositionForwardArgs& args, DType dtype, KernelContext& ctx) {
  HWY_DYNAMIC_DISPATCH(PositionForward)(args, dtype, ctx);
}

void PositionBackward(const PositionBackwardArgs& args, DType dtype, KernelContext& ctx) {
  HWY_DYNAMIC_DISPATCH(PositionBackward)(args, dtype, ctx);
}

}  // namespace planc::host
#endif  // HWY_ONCE
