#ifndef PLANC_PLANC_SCHEDULE_H_
#define PLANC_PLANC_SCHEDULE_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "schemas/plan.h"

namespace planc {

// Rates of one rank, as the device catalogue gives them.
struct Rates {
  double flops = 0;              // operations per second in the job's compute dtype
  double memory_bandwidth = 0;   // bytes per second
  double link_bandwidth = 0;     // bytes per second, one direction, inside a node
  double network_bandwidth = 0;  // bytes per second, one direction, between nodes
};

// The rates of the plan's device. Errors: NotFound for a device that the catalogue lacks.
absl::StatusOr<Rates> RatesOf(const Plan& plan);

// One instruction that ran from `begin` to `end` (seconds from the start of the step).
struct StepSpan {
  int32_t block = 0;
  int32_t instruction = 0;  // within the block
  int32_t layer = -1;
  int32_t microbatch = -1;
  double begin = 0;
  double end = 0;
};

// The step of one representative rank of each stage, by the plan's own streams, events and
// rendezvous, when every instruction takes the time that its cost needs at `Rates` and nothing
// else takes time: a lower bound of the real step.
struct StepPrediction {
  std::vector<std::vector<StepSpan>> stages;  // spans in program order
  double seconds = 0;
};

// Errors: FailedPrecondition when the step cannot finish (an unsafe plan), InvalidArgument for
// indices that lie outside their tables.
absl::StatusOr<StepPrediction> PredictStep(const Plan& plan, const Rates& rates);

}  // namespace planc

#endif  // PLANC_PLANC_SCHEDULE_H_
