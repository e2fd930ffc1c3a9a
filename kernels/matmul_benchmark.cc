// Products of a training step, in FLOP/s, by implementation.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels/aligned_buffer.h"
#include "kernels/instruction_set.h"
#include "kernels/matmul.h"

namespace planc::host {
namespace {

enum class Pass { kForward, kInputGradient, kWeightGradient };

// The products of a linear layer y[T, N] = x[T, K] W[N, K]^T.
MatmulShape LayerShape(Pass pass, int64_t tokens, int64_t out, int64_t in, DType dtype) {
  switch (pass) {
    case Pass::kForward:
      return {
          .m = tokens, .n = out, .k = in, .transpose_b = true, .a = dtype, .b = dtype, .c = dtype};
    case Pass::kInputGradient:
      return {.m = tokens, .n = in, .k = out, .a = dtype, .b = dtype, .c = dtype};
    case Pass::kWeightGradient:
      break;
  }
  return {.m = out,
          .n = in,
          .k = tokens,
          .transpose_a = true,
          .a = dtype,
          .b = dtype,
          .accumulate = true};
}

// Elements of 1.0 in either type: 0x3f80 is bf16's, 0x3f803f80 a float near it.
std::vector<uint16_t> Ones(int64_t elements, DType dtype) {
  return std::vector<uint16_t>(elements * SizeOf(dtype) / 2, 0x3f80);
}

void Run(benchmark::State& state, const MatmulShape& shape, MatmulImplementation implementation) {
  const int threads = static_cast<int>(state.range(3));
  auto matmul = Matmul::Create(shape, threads, *DetectInstructionSet(), implementation);
  if (!matmul.ok()) return state.SkipWithError(std::string(matmul.status().message()).c_str());
  std::vector<uint16_t> a = Ones(shape.m * shape.k, shape.a);
  std::vector<uint16_t> b = Ones(shape.k * shape.n, shape.b);
  std::vector<uint16_t> c = Ones(shape.m * shape.n, shape.c);
  AlignedBuffer workspace((*matmul)->workspace_bytes());
  KernelContext context{workspace.data(), workspace.size(), threads};
  for (auto _ : state) (*matmul)->Run(a.data(), b.data(), c.data(), context);
  state.SetLabel((*matmul)->implementation());
  const double flops = 2.0 * static_cast<double>(shape.m * shape.n) * static_cast<double>(shape.k);
  state.counters["FLOP/s"] =
      benchmark::Counter(flops, benchmark::Counter::kIsIterationInvariantRate);
}

template <Pass kPass, DType kDType, MatmulImplementation kImplementation>
void BM_Linear(benchmark::State& state) {
  Run(state, LayerShape(kPass, state.range(0), state.range(1), state.range(2), kDType),
      kImplementation);
}

// Tokens, outputs, inputs, threads. Real time, since several threads work on one product.
void Sizes(benchmark::internal::Benchmark* benchmark) {
  benchmark->UseRealTime();
  for (int threads : {1, 2}) {
    benchmark->Args({1024, 1024, 1024, threads});
    benchmark->Args({512, 4096, 256, threads});
    benchmark->Args({2048, 256, 256, threads});
    benchmark->Args({64, 64, 64, threads});
    benchmark->Args({8192, 1376, 512, threads});
    benchmark->Args({8192, 512, 1376, threads});
  }
}

constexpr MatmulImplementation kPacked = MatmulImplementation::kPacked;
constexpr MatmulImplementation kAutomatic = MatmulImplementation::kAutomatic;
constexpr MatmulImplementation kOneDnn = MatmulImplementation::kOneDnn;

BENCHMARK_TEMPLATE(BM_Linear, Pass::kForward, DType::kF32, kPacked)->Apply(Sizes);
BENCHMARK_TEMPLATE(BM_Linear, Pass::kForward, DType::kF32, kOneDnn)->Apply(Sizes);
BENCHMARK_TEMPLATE(BM_Linear, Pass::kForward, DType::kBF16, kPacked)->Apply(Sizes);
BENCHMARK_TEMPLATE(BM_Linear, Pass::kForward, DType::kBF16, kAutomatic)->Apply(Sizes);
BENCHMARK_TEMPLATE(BM_Linear, Pass::kForward, DType::kBF16, kOneDnn)->Apply(Sizes);
BENCHMARK_TEMPLATE(BM_Linear, Pass::kInputGradient, DType::kF32, kPacked)->Apply(Sizes);
BENCHMARK_TEMPLATE(BM_Linear, Pass::kInputGradient, DType::kF32, kOneDnn)->Apply(Sizes);
BENCHMARK_TEMPLATE(BM_Linear, Pass::kInputGradient, DType::kBF16, kPacked)->Apply(Sizes);
BENCHMARK_TEMPLATE(BM_Linear, Pass::kInputGradient, DType::kBF16, kAutomatic)->Apply(Sizes);
BENCHMARK_TEMPLATE(BM_Linear, Pass::kInputGradient, DType::kBF16, kOneDnn)->Apply(Sizes);
BENCHMARK_TEMPLATE(BM_Linear, Pass::kWeightGradient, DType::kF32, kPacked)->Apply(Sizes);
BENCHMARK_TEMPLATE(BM_Linear, Pass::kWeightGradient, DType::kF32, kOneDnn)->Apply(Sizes);
BENCHMARK_TEMPLATE(BM_Linear, Pass::kWeightGradient, DType::kBF16, kPacked)->Apply(Sizes);
BENCHMARK_TEMPLATE(BM_Linear, Pass::kWeightGradient, DType::kBF16, kAutomatic)->Apply(Sizes);
BENCHMARK_TEMPLATE(BM_Linear, Pass::kWeightGradient, DType::kBF16, kOneDnn)->Apply(Sizes);

}  // namespace
}  // namespace planc::host
