#include "planc/run_deadlines.h"

#include <algorithm>

#include "planc/schedule.h"
#include "runtime/checkpoint/checkpoint_size.h"

namespace planc {
namespace {

constexpr absl::Duration kShortestStall = absl::Seconds(60);
constexpr absl::Duration kShortestConnect = absl::Seconds(20);
constexpr absl::Duration kShortestEstimatedConnect = absl::Minutes(2);
constexpr double kMargin = 20;

// 0 for a device that the catalogue lacks.
absl::Duration PredictedStep(const Plan& plan) {
  const absl::StatusOr<Rates> rates = RatesOf(plan);
  if (!rates.ok()) return absl::ZeroDuration();
  const absl::StatusOr<StepPrediction> step = PredictStep(plan, *rates);
  return step.ok() ? absl::Seconds(step->seconds) : absl::ZeroDuration();
}

}  // namespace

RunDeadlines DeadlinesOf(const Plan& plan) {
  RunDeadlines deadlines;
  deadlines.stall = absl::Seconds(plan.job.run().stall_timeout());
  if (deadlines.stall <= absl::ZeroDuration()) {
    deadlines.estimated = true;
    deadlines.stall = std::max(kShortestStall, kMargin * PredictedStep(plan));
  }
  deadlines.agreement =
      deadlines.stall + kMargin * absl::Seconds(CheckpointSizeOf(plan).write_seconds);
  deadlines.connect =
      std::max(deadlines.stall, deadlines.estimated ? kShortestEstimatedConnect : kShortestConnect);
  return deadlines;
}

}  // namespace planc
