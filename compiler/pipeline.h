#ifndef PLANC_COMPILER_PIPELINE_H_
#define PLANC_COMPILER_PIPELINE_H_

#include "absl/status/statusor.h"
#include "compiler/graph/step_graph.h"
#include "schemas/job_spec.h"
#include "schemas/plan.h"

namespace planc {

// Runs the passes of passes/passes.h over the job, up to and including the pass named `stop_after`
// (empty: all). For golden tests.
absl::StatusOr<StepGraph> BuildGraph(const JobSpec& spec, const std::string& stop_after = "");

// Compiles a job that LoadJob accepted into a plan. Errors are faults of the compiler (Internal).
// The result is not verified yet: call VerifyPlan before it is written or run.
absl::StatusOr<Plan> CompilePlan(const JobSpec& spec);

}  // namespace planc

#endif  // PLANC_COMPILER_PIPELINE_H_
