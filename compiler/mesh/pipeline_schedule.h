#ifndef PLANC_COMPILER_MESH_PIPELINE_SCHEDULE_H_
#define PLANC_COMPILER_MESH_PIPELINE_SCHEDULE_H_

#include <cstdint>
#include <vector>

#include "schemas/job.pb.h"

namespace planc {

// One unit of pipeline work: the forward or backward pass of one model chunk for one microbatch.
struct PipelineAction {
  bool forward = true;
  int chunk = 0;  // virtual stage on this rank, 0..chunks-1
  int microbatch = 0;
  friend bool operator==(const PipelineAction&, const PipelineAction&) = default;
};

struct PipelineShape {
  proto::Schedule schedule = proto::ONE_F_ONE_B;
  int stages = 1;        // p
  int chunks = 1;        // v
  int microbatches = 1;  // m
};

// The order in which one stage works, 0 <= stage < stages.
//   gpipe (Huang et al., arXiv 1811.06965): all forwards, then all backwards;
//   1f1b (Narayanan et al., arXiv 2104.04473, section 2.2): min(p - stage - 1, m) forwards first;
//   interleaved_1f1b (section 2.3 there): 2 (p - stage - 1) + (v - 1) p chunk forwards first, m a
//   multiple of p.
std::vector<PipelineAction> PipelineOrder(const PipelineShape& shape, int stage);

// The forward passes of PipelineOrder alone, in their order.
std::vector<PipelineAction> ForwardOrder(const PipelineShape& shape, int stage);

// Timing of a schedule with free communication: each action starts when its stage is free and its
// input is there.
struct ScheduleTiming {
  double makespan = 0;
  std::vector<std::vector<double>> start;  // [stage][action]
  std::vector<double> peak;  // per stage: most microbatches of activations held, a chunk counts 1/v
};

// `forward` and `backward` are the durations of one full stage; a chunk takes 1/v of them.
ScheduleTiming SimulateSchedule(const PipelineShape& shape, double forward, double backward);

}  // namespace planc

#endif  // PLANC_COMPILER_MESH_PIPELINE_SCHEDULE_H_
