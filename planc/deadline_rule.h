#ifndef PLANC_PLANC_DEADLINE_RULE_H_
#define PLANC_PLANC_DEADLINE_RULE_H_

#include <optional>
#include <string>

#include "compiler/diagnostics/diagnostic.h"
#include "compiler/spec/load_job.h"
#include "planc/schedule.h"
#include "schemas/plan.h"

namespace planc {

// The longest time in which nothing moves on a rank although all is well.
struct LongestWait {
  double seconds = 0;
  int stage = 0;
  std::string instruction;  // the one that ends it: computes that long, or waits for others
};

// In the predicted step: instruction after instruction that ends on any stream of a stage.
LongestWait LongestWaitOf(const Plan& plan, const StepPrediction& step);

// How much faster than the catalogue's a rank of a device may be. Figures of accelerators are those
// of their data sheets, which nothing exceeds; those of the host are of one small core, and a rank
// may have many larger ones.
double FastestOverCatalogue(const Plan& plan);
// run.stall_timeout should be this many times the longest wait, since predictions are for peak
// rates.
inline constexpr double kDeadlineMargin = 4;

// PL0302, an error, where run.stall_timeout is so short that a rank that computes would be taken
// for stalled; PL0303, a warning, where it is less than the margin. Nothing where the job does not
// set it, or there is no prediction. `job` is null for a plan file.
void AddDeadlineFinding(const Plan& plan, const LoadResult* job, DiagnosticList* list);

}  // namespace planc

#endif  // PLANC_PLANC_DEADLINE_RULE_H_
