#ifndef PLANC_RUNTIME_STEP_SCHEDULE_H_
#define PLANC_RUNTIME_STEP_SCHEDULE_H_

#include <cstdint>

#include "schemas/job.pb.h"

namespace planc {

// The scalars of one optimizer step, handed to every Adamw instruction of that step.
struct HyperParameters {
  int64_t update = 1;  // of this update, counted from 1; gives the bias corrections of the moments
  double lr = 0;       // of this step, after the schedule
  double beta1 = 0;
  double beta2 = 0;
  double epsilon = 0;
  double weight_decay = 0;
};

// lr_schedule.decay_steps; run.steps in jobs of before there was that key.
int64_t DecayEnd(const proto::Job& job);

// Learning rate of `step`, which counts from 0. With W = lr_schedule.warmup_steps, N = DecayEnd,
// and r = lr_schedule.min_ratio:
//   step < W:  lr * (step + 1) / W                            (linear from 0)
//   otherwise, with p = min(1, (step - W) / (N - W)):
//     constant: lr
//     linear:   lr * (1 - (1 - r) * p)
//     cosine:   lr * (r + (1 - r) * (1 + cos(pi * p)) / 2)    (Loshchilov and Hutter 2017)
double LearningRate(const proto::Job& job, int64_t step);

// All scalars of `step`, which counts from 0.
HyperParameters HyperParametersOf(const proto::Job& job, int64_t step);

}  // namespace planc

#endif  // PLANC_RUNTIME_STEP_SCHEDULE_H_
