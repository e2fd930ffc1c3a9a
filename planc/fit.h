#ifndef PLANC_PLANC_FIT_H_
#define PLANC_PLANC_FIT_H_

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "compiler/diagnostics/diagnostic.h"
#include "compiler/spec/load_job.h"
#include "planc/fit_search.h"
#include "schemas/plan.h"

namespace planc {

// Bytes of all arenas of one rank of the class, those in host memory too.
int64_t RankBytes(const RankClass& rank_class);

// The class whose ranks need most device memory. REQUIRES: the plan has a class.
const RankClass& FullestClass(const Plan& plan);

// Why a plan does not fit, PL0301: at the key that decides, with the bytes that matter and the
// changes that make it fit or help.
struct FitReport {
  Diagnostic verdict;
  std::string tables;                // for people, below it: bytes by kind, changes
  std::vector<std::string> details;  // the changes as sentences, for programs
};

// Nothing when every rank stays within cluster.memory (0: no bound is checked). The changes are
// found by compiling the job, as `load` loads it, with each; of a plan file (`job` is null) there
// are none.
std::optional<FitReport> ReportMisfit(const Plan& plan, const LoadResult* job,
                                      const JobLoader& load);

// ReportMisfit for people: writes it to `err`. Returns kExitOk or kExitDoesNotFit. `path` and
// `sets`: as the job was loaded.
int CheckFits(const Plan& plan, const std::string& path, const std::vector<std::string>& sets,
              const LoadResult* job, std::ostream& err);

// Loads the job file `path` with `sets` and more.
JobLoader LoaderOf(const std::string& path, const std::vector<std::string>& sets);

}  // namespace planc

#endif  // PLANC_PLANC_FIT_H_
