#include "runtime/step/schedule.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>

namespace planc {

int64_t DecayEnd(const proto::Job& job) {
  return job.lr_schedule().decay_steps() > 0 ? job.lr_schedule().decay_steps() : job.run().steps();
}

double LearningRate(const proto::Job& job, int64_t step) {
  const double peak = job.optimizer().lr();
  const int64_t warmup = job.lr_schedule().warmup_steps();
  if (step < warmup) return peak * static_cast<double>(step + 1) / static_cast<double>(warmup);
  if (job.lr_schedule().decay() == proto::CONSTANT) return peak;

  const double floor = job.lr_schedule().min_ratio();
  const int64_t end = DecayEnd(job);
  const double decay_steps = static_cast<double>(std::max<int64_t>(1, end - warmup));
  const double progress = std::min(1.0, static_cast<double>(step - warmup) / decay_steps);
  const double remaining = job.lr_schedule().decay() == proto::LINEAR
                               ? 1.0 - progress
                               : (1.0 + std::cos(std::numbers::pi * progress)) / 2.0;
  return peak * (floor + (1.0 - floor) * remaining);
}

HyperParameters HyperParametersOf(const proto::Job& job, int64_t step) {
  HyperParameters scalars;
  scalars.update = step + 1;
  scalars.lr = LearningRate(job, step);
  scalars.beta1 = job.optimizer().betas(0);
  scalars.beta2 = job.optimizer().betas(1);
  scalars.epsilon = job.optimizer().epsilon();
  scalars.weight_decay = job.optimizer().weight_decay();
  return scalars;
}

}  // namespace planc
