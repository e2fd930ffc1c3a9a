// Rates of the memory-bound host kernels, in bytes read and written per second; compare with the
// copy (BM_Cast from f32 to f32), which is the machine's limit.
#include <benchmark/benchmark.h>

#include <vector>

#include "kernels/activation.h"
#include "kernels/bf16.h"
#include "kernels/cross_entropy.h"
#include "kernels/elementwise.h"
#include "kernels/norm.h"
#include "kernels/optimizer.h"
#include "kernels/philox.h"

namespace planc::host {
namespace {

// Argument 0 of every benchmark: 0 for f32, 1 for bf16.
DType Type(const benchmark::State& state) {
  return state.range(0) == 0 ? DType::kF32 : DType::kBF16;
}

// `elements` normal values in `dtype`.
std::vector<char> Values(DType dtype, int64_t elements) {
  std::vector<float> values(elements);
  FillNormal(MakePhiloxKey(1, "benchmark"), 0, elements, 1.0f, values.data());
  std::vector<char> bytes(elements * SizeOf(dtype));
  KernelContext ctx;
  Cast({.elements = elements,
        .source = values.data(),
        .destination = bytes.data(),
        .destination_dtype = dtype},
       ctx);
  return bytes;
}

void SetBytes(benchmark::State& state, int64_t bytes) {
  state.SetBytesProcessed(state.iterations() * bytes);
}

constexpr int64_t kTokens = 2048;
constexpr int64_t kHidden = 1024;
constexpr int64_t kElements = kTokens * kHidden;

void BM_Cast(benchmark::State& state) {
  const DType to = Type(state);
  const std::vector<char> x = Values(DType::kF32, kElements);
  std::vector<char> y(kElements * SizeOf(to));
  KernelContext ctx;
  for (auto _ : state) {
    Cast({.elements = kElements,
          .source = x.data(),
          .destination = y.data(),
          .destination_dtype = to},
         ctx);
  }
  SetBytes(state, kElements * (4 + SizeOf(to)));
}
BENCHMARK(BM_Cast)->Arg(0)->Arg(1);

void BM_RmsNormForward(benchmark::State& state) {
  const DType dtype = Type(state);
  const std::vector<char> x = Values(dtype, kElements), weight = Values(dtype, kHidden);
  std::vector<char> y(x.size());
  std::vector<float> rstd(kTokens);
  KernelContext ctx;
  for (auto _ : state) {
    RmsNormForward({.tokens = kTokens,
                    .hidden = kHidden,
                    .epsilon = 1e-5f,
                    .x = x.data(),
                    .weight = weight.data(),
                    .y = y.data(),
                    .rstd = rstd.data()},
                   dtype, ctx);
  }
  SetBytes(state, 2 * kElements * SizeOf(dtype));
}
BENCHMARK(BM_RmsNormForward)->Arg(0)->Arg(1);

void BM_RmsNormBackward(benchmark::State& state) {
  const DType dtype = Type(state);
  const std::vector<char> x = Values(dtype, kElements), weight = Values(dtype, kHidden);
  std::vector<char> dx(x.size());
  std::vector<float> rstd(kTokens, 1.0f), dweight(kHidden);
  std::vector<char> workspace(RmsNormBackwardWorkspaceBytes(kTokens, kHidden));
  KernelContext ctx = {workspace.data(), workspace.size(), 1};
  for (auto _ : state) {
    RmsNormBackward({.tokens = kTokens,
                     .hidden = kHidden,
                     .dy = x.data(),
                     .x = x.data(),
                     .weight = weight.data(),
                     .rstd = rstd.data(),
                     .dx = dx.data(),
                     .dweight = dweight.data()},
                    dtype, ctx);
  }
  SetBytes(state, 3 * kElements * SizeOf(dtype));
}
BENCHMARK(BM_RmsNormBackward)->Arg(0)->Arg(1);

void BM_SwiGluForward(benchmark::State& state) {
  const DType dtype = Type(state);
  const std::vector<char> gate_up = Values(dtype, 2 * kElements);
  std::vector<char> s(kElements * SizeOf(dtype));
  KernelContext ctx;
  for (auto _ : state) {
    SwiGluForward({.tokens = kTokens, .ffn = kHidden, .gate_up = gate_up.data(), .s = s.data()},
                  dtype, ctx);
  }
  SetBytes(state, 3 * kElements * SizeOf(dtype));
}
BENCHMARK(BM_SwiGluForward)->Arg(0)->Arg(1);

void BM_SwiGluBackward(benchmark::State& state) {
  const DType dtype = Type(state);
  const std::vector<char> gate_up = Values(dtype, 2 * kElements), ds = Values(dtype, kElements);
  std::vector<char> dgate_up(gate_up.size());
  KernelContext ctx;
  for (auto _ : state) {
    SwiGluBackward({.tokens = kTokens,
                    .ffn = kHidden,
                    .gate_up = gate_up.data(),
                    .ds = ds.data(),
                    .dgate_up = dgate_up.data()},
                   dtype, ctx);
  }
  SetBytes(state, 5 * kElements * SizeOf(dtype));
}
BENCHMARK(BM_SwiGluBackward)->Arg(0)->Arg(1);

// The three parts of the loss over 64 rows of 32768 logits, gradient in place.
void BM_CrossEntropy(benchmark::State& state) {
  const DType dtype = Type(state);
  constexpr int64_t kRows = 64, kVocab = 32768;
  std::vector<char> logits = Values(dtype, kRows * kVocab);
  std::vector<float> maximum(kRows), pair(2 * kRows);
  const std::vector<int32_t> targets(kRows, 3);
  float loss = 0;
  KernelContext ctx;
  for (auto _ : state) {
    LogitsMax({.tokens = kRows,
               .columns = kVocab,
               .valid_columns = kVocab,
               .logits = logits.data(),
               .maximum = maximum.data()},
              dtype, ctx);
    SumExp({.tokens = kRows,
            .columns = kVocab,
            .valid_columns = kVocab,
            .logits = logits.data(),
            .maximum = maximum.data(),
            .targets = targets.data(),
            .pair = pair.data()},
           dtype, ctx);
    LossGrad({.tokens = kRows,
              .columns = kVocab,
              .valid_columns = kVocab,
              .scale = 1.0f,
              .logits = logits.data(),
              .maximum = maximum.data(),
              .pair = pair.data(),
              .targets = targets.data(),
              .dlogits = logits.data(),
              .loss = &loss},
             dtype, ctx);
  }
  SetBytes(state, 4 * kRows * kVocab * SizeOf(dtype));
}
BENCHMARK(BM_CrossEntropy)->Arg(0)->Arg(1);

void BM_SumSquares(benchmark::State& state) {
  const DType dtype = Type(state);
  const std::vector<char> gradient = Values(dtype, kElements);
  double sum = 0;
  KernelContext ctx;
  for (auto _ : state) {
    SumSquares({.elements = kElements, .gradient = gradient.data(), .sum = &sum}, dtype, ctx);
  }
  SetBytes(state, kElements * SizeOf(dtype));
}
BENCHMARK(BM_SumSquares)->Arg(0)->Arg(1);

// fp32 gradients and state; the argument is the type of the compute copy.
void BM_AdamW(benchmark::State& state) {
  const DType dtype = Type(state);
  const std::vector<char> gradient = Values(DType::kF32, kElements);
  std::vector<float> master(kElements), first(kElements), second(kElements);
  std::vector<char> copy(kElements * SizeOf(dtype));
  KernelContext ctx;
  for (auto _ : state) {
    AdamW({.elements = kElements,
           .lr = 1e-3,
           .beta1 = 0.9,
           .beta2 = 0.95,
           .epsilon = 1e-8,
           .weight_decay = 0.1,
           .gradient = gradient.data(),
           .master = master.data(),
           .first_moment = first.data(),
           .second_moment = second.data(),
           .compute_copy = copy.data(),
           .compute_dtype = dtype},
          ctx);
  }
  SetBytes(state, kElements * (7 * 4 + SizeOf(dtype)));
}
BENCHMARK(BM_AdamW)->Arg(0)->Arg(1);

void BM_FillNormal(benchmark::State& state) {
  std::vector<float> values(1 << 18);
  for (auto _ : state) {
    FillNormal(MakePhiloxKey(1, "benchmark"), 0, 1 << 18, 1.0f, values.data());
  }
  state.SetItemsProcessed(state.iterations() * (1 << 18));
}
BENCHMARK(BM_FillNormal);

}  // namespace
}  // namespace planc::host
