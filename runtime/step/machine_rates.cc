#include "runtime/step/machine_rates.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "kernels/elementwise.h"
#include "kernels/matmul.h"
#include "runtime/device/static_arena.h"
#include "runtime/step/profile.h"
#include "schemas/dtype.h"
#include "schemas/status.h"

namespace planc {
namespace {

// Of the memory that is measured with, for messages.
constexpr char kName[] = "machine rates";
// Long enough for a quiet moment, on a machine that others use too.
constexpr int64_t kMeasuringNanoseconds = 200'000'000;

// Seconds of the fastest run, after one to warm up.
template <typename Body>
double BestSeconds(Body body) {
  body();
  const int64_t first = ProfileClock();
  int64_t best = INT64_MAX;
  for (int64_t begin = first; begin - first < kMeasuringNanoseconds;) {
    body();
    const int64_t end = ProfileClock();
    best = std::min(best, end - begin);
    begin = end;
  }
  return static_cast<double>(std::max<int64_t>(best, 1)) * 1e-9;
}

// y = x W^T, as in the forward pass of a linear layer.
absl::StatusOr<double> ProductRate(Device* device, int threads,
                                   host::InstructionSet instruction_set, DType dtype) {
  const int64_t size = threads > 8 ? 2048 : 1024;  // rows and columns
  const host::MatmulShape shape = {
      .m = size, .n = size, .k = size, .transpose_b = true, .a = dtype, .b = dtype, .c = dtype};
  const int64_t bytes = size * size * SizeOf(dtype);
  StaticArena a(device, kName), b(device, kName), c(device, kName);
  PLANC_RETURN_IF_ERROR(a.Allocate(bytes));
  PLANC_RETURN_IF_ERROR(b.Allocate(bytes));
  PLANC_RETURN_IF_ERROR(c.Allocate(bytes));
  double rate = 0;
  for (const auto implementation :
       {host::MatmulImplementation::kAutomatic, host::MatmulImplementation::kOneDnn}) {
    const auto product = host::Matmul::Create(shape, threads, instruction_set, implementation);
    if (!product.ok()) continue;  // oneDNN does not have each type on each machine
    StaticArena workspace(device, kName);
    PLANC_RETURN_IF_ERROR(workspace.Allocate((*product)->workspace_bytes()));
    host::KernelContext context = {workspace.base(), static_cast<size_t>(workspace.bytes()),
                                   threads, instruction_set};
    const double seconds =
        BestSeconds([&] { (*product)->Run(a.base(), b.base(), c.base(), context); });
    rate = std::max(rate, 2 * static_cast<double>(size * size * size) / seconds);
  }
  return rate;
}

// In b += a every byte that moves is one that the kernel asks for: a buffer that is only written
// would be read first by the cache, uncounted.
absl::StatusOr<double> MemoryRate(Device* device, int threads) {
  constexpr int64_t kBytes = int64_t{128} << 20;
  StaticArena a(device, kName), b(device, kName);
  PLANC_RETURN_IF_ERROR(a.Allocate(kBytes));
  PLANC_RETURN_IF_ERROR(b.Allocate(kBytes));
  host::KernelContext context = {nullptr, 0, threads};
  const host::AccumulateArgs args = {
      .elements = kBytes / SizeOf(DType::kF32), .source = a.base(), .destination = b.base()};
  const double seconds = BestSeconds([&] { host::Accumulate(args, context); });
  return 3.0 * static_cast<double>(kBytes) / seconds;
}

}  // namespace

absl::StatusOr<MachineRates> MeasureMachineRates(Device* device, int threads,
                                                 host::InstructionSet instruction_set, bool bf16) {
  MachineRates rates;
  rates.threads = threads;
  PLANC_ASSIGN_OR_RETURN(rates.bytes_per_second, MemoryRate(device, threads));
  PLANC_ASSIGN_OR_RETURN(rates.fp32_flops,
                         ProductRate(device, threads, instruction_set, DType::kF32));
  if (bf16) {
    PLANC_ASSIGN_OR_RETURN(rates.bf16_flops,
                           ProductRate(device, threads, instruction_set, DType::kBF16));
  }
  return rates;
}

}  // namespace planc
