#ifndef PLANC_PLANC_FIT_H_
#define PLANC_PLANC_FIT_H_

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "compiler/spec/load_job.h"
#include "schemas/plan.h"

namespace planc {

// Bytes of all arenas of one rank of the class, those in host memory too.
int64_t RankBytes(const RankClass& rank_class);

// The class whose ranks need most device memory. REQUIRES: the plan has a class.
const RankClass& FullestClass(const Plan& plan);

// kExitOk when every rank stays within cluster.memory (0: no bound is checked). Otherwise writes
// PL0301 to `err` and returns kExitDoesNotFit: the rank class, a table of bytes by kind, and, for a
// job file (`job` is not null; `path` and `sets` as it was loaded), the three cheapest changes that
// help, found by compiling the job with each.
int CheckFits(const Plan& plan, const std::string& path, const std::vector<std::string>& sets,
              const LoadResult* job, std::ostream& err);

}  // namespace planc

#endif  // PLANC_PLANC_FIT_H_
