#ifndef PLANC_PLANC_FIT_SEARCH_H_
#define PLANC_PLANC_FIT_SEARCH_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "compiler/spec/load_job.h"
#include "schemas/plan.h"

namespace planc {

// Loads a job with `sets` on top of the overrides it has.
using JobLoader = std::function<LoadResult(const std::vector<std::string>& sets)>;

// The keys that trade memory for time or for machines.
struct MemorySettings {
  int64_t nodes = 1;
  int64_t pp = 1;
  int64_t dp_replicate = 1;
  int64_t dp_shard = 1;
  int64_t tp = 1;
  int64_t zero = 1;
  bool sequence_parallel = false;
  proto::Recompute recompute = proto::RECOMPUTE_NONE;
  int64_t micro = 1;
  int64_t global = 1;
};

MemorySettings MemorySettingsOf(const proto::Job& job);

// A combination of changes with which every rank stays within cluster.memory; it was compiled.
struct FittingChange {
  MemorySettings settings;
  std::vector<std::string> sets;  // overrides: what differs from the job
  int64_t bytes = 0;              // of the fullest rank
  double seconds = 0;             // predicted step; 0 where there is no prediction
};

// Combinations of mesh, zero, recompute, micro and sequence_parallel that make the job of `plan`,
// which does not fit, fit on the machines it has; where none does and `more_nodes` is set, on the
// least power of two times as many. Where data-parallel ranks become too many for batch.global,
// that is raised as well. No change is part of a combination that fits without it. Fastest first,
// at most `kMostFittingChanges`. How many combinations are compiled is bounded, and less for plans
// that take longer, by their size and not by a clock: the result is the same everywhere.
inline constexpr size_t kMostFittingChanges = 3;
std::vector<FittingChange> FindFittingChanges(const Plan& plan, const JobLoader& load,
                                              bool more_nodes);

// Seconds of one step at catalogue peak rates; 0 where there is no prediction.
double PredictedStepSeconds(const Plan& plan);

// Bytes that no partition goes below, all ranks together: fp32 master weights and two fp32 moments.
int64_t LeastStateBytes(const proto::Model& model);

}  // namespace planc

#endif  // PLANC_PLANC_FIT_SEARCH_H_
