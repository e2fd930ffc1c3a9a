// Causal attention in FLOP/s. Counts the products of visible (query, key) pairs alone: 2 of them
// forward, 5 backward, 2*D operations each.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <vector>

#include "kernels/aligned_buffer.h"
#include "kernels/attention.h"
#include "kernels/bf16.h"
#include "kernels/instruction_set.h"

namespace planc::host {
namespace {

template <typename T>
constexpr DType kDTypeOf = sizeof(T) == sizeof(float) ? DType::kF32 : DType::kBF16;

AttentionShape ShapeOf(const benchmark::State& state) {
  AttentionShape shape;
  shape.batch = 1;
  shape.sequence = state.range(0);
  shape.head_dim = state.range(1);
  shape.query_heads = state.range(2);
  shape.kv_heads = state.range(3);
  return shape;
}

template <typename T>
std::vector<T> Values(int64_t count) {
  std::vector<T> values(count);
  for (int64_t i = 0; i < count; ++i) {
    values[i] = FromFloat<T>(static_cast<float>(i * 7919 % 1000) / 500.0f - 1.0f);
  }
  return values;
}

InstructionSet LargestSet() { return DetectInstructionSet().value(); }

void CountFlops(benchmark::State& state, double products) {
  const AttentionShape s = ShapeOf(state);
  const double pairs = 0.5 * static_cast<double>(s.sequence * (s.sequence + 1));
  const double flops =
      products * 2.0 * pairs * static_cast<double>(s.head_dim * s.query_heads * s.batch);
  state.counters["FLOP/s"] =
      benchmark::Counter(flops, benchmark::Counter::kIsIterationInvariantRate);
}

template <typename T>
struct Buffers {
  explicit Buffers(const AttentionShape& s)
      : qkv(Values<T>(s.batch * s.sequence * (s.query_heads + 2 * s.kv_heads) * s.head_dim)),
        o(Values<T>(s.batch * s.sequence * s.query_heads * s.head_dim)),
        d_o(o),
        dqkv(qkv),
        lse(s.batch * s.sequence * s.query_heads) {}
  std::vector<T> qkv, o, d_o, dqkv;
  std::vector<float> lse;
};

template <typename T>
void BM_AttentionForward(benchmark::State& state) {
  const AttentionShape shape = ShapeOf(state);
  Buffers<T> buffers(shape);
  AlignedBuffer workspace(AttentionForwardWorkspaceBytes(shape, 1));
  KernelContext context{workspace.data(), workspace.size(), 1, LargestSet()};
  for (auto _ : state) {
    AttentionForward({shape, buffers.qkv.data(), buffers.o.data(), buffers.lse.data()}, kDTypeOf<T>,
                     context);
  }
  CountFlops(state, 2);
}

template <typename T>
void BM_AttentionBackward(benchmark::State& state) {
  const AttentionShape shape = ShapeOf(state);
  Buffers<T> buffers(shape);
  AlignedBuffer workspace(AttentionBackwardWorkspaceBytes(shape, 1));
  KernelContext context{workspace.data(), workspace.size(), 1, LargestSet()};
  AttentionForward({shape, buffers.qkv.data(), buffers.o.data(), buffers.lse.data()}, kDTypeOf<T>,
                   context);
  for (auto _ : state) {
    AttentionBackward({shape, buffers.qkv.data(), buffers.o.data(), buffers.lse.data(),
                       buffers.d_o.data(), buffers.dqkv.data()},
                      kDTypeOf<T>, context);
  }
  CountFlops(state, 5);
}

// Sequence, head dimension, query heads, key/value heads.
void Sizes(benchmark::internal::Benchmark* benchmark) {
  benchmark->Args({128, 32, 4, 4});
  benchmark->Args({512, 64, 4, 4});
  benchmark->Args({512, 64, 8, 2});
  benchmark->Args({2048, 128, 2, 1});
}

BENCHMARK_TEMPLATE(BM_AttentionForward, float)->Apply(Sizes);
BENCHMARK_TEMPLATE(BM_AttentionForward, Bf16)->Apply(Sizes);
BENCHMARK_TEMPLATE(BM_AttentionBackward, float)->Apply(Sizes);
BENCHMARK_TEMPLATE(BM_AttentionBackward, Bf16)->Apply(Sizes);

}  // namespace
}  // namespace planc::host
