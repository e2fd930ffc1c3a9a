#ifndef PLANC_RUNTIME_STEP_MACHINE_RATES_H_
#define PLANC_RUNTIME_STEP_MACHINE_RATES_H_

#include "absl/status/statusor.h"
#include "kernels/instruction_set.h"
#include "runtime/device/device.h"

namespace planc {

// What this machine attains; profiles measure instructions against it.
struct MachineRates {
  double fp32_flops = 0;        // FLOP/s of a large product; 0 when it was not measured
  double bf16_flops = 0;        // the same of bf16 operands
  double bytes_per_second = 0;  // read and written, in memory that the caches do not hold
  int threads = 1;              // at work in both
};

// Measures the faster of the kernels that a run on `instruction_set` uses and oneDNN's on square
// products, of bf16 only where `bf16` asks for it, and b += a over 256 MiB of `device`, more than a
// last-level cache holds. Each is the best of a fifth of a second.
// Errors: ResourceExhausted when the memory is not free.
absl::StatusOr<MachineRates> MeasureMachineRates(Device* device, int threads,
                                                 host::InstructionSet instruction_set, bool bf16);

}  // namespace planc

#endif  // PLANC_RUNTIME_STEP_MACHINE_RATES_H_
