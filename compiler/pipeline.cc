#include "compiler/pipeline.h"

#include "compiler/graph/layout_rules.h"
#include "compiler/passes/passes.h"
#include "schemas/status.h"

namespace planc {

absl::StatusOr<StepGraph> BuildGraph(const JobSpec& spec, const std::string& stop_after) {
  StepGraph graph;
  graph.job = spec.job;
#define PLANC_RUN_PASS(Name, name)                                              \
  PLANC_RETURN_IF_ERROR(WithContext(Name(graph), "pass " #name));               \
  PLANC_RETURN_IF_ERROR(WithContext(CheckLayouts(graph), "after pass " #name)); \
  if (stop_after == #name) return graph;
  PLANC_PASSES(PLANC_RUN_PASS)
#undef PLANC_RUN_PASS
  return graph;
}

absl::StatusOr<Plan> CompilePlan(const JobSpec& spec) {
  PLANC_ASSIGN_OR_RETURN(const StepGraph graph, BuildGraph(spec));
  Plan plan;
  PLANC_RETURN_IF_ERROR(SchedulePrograms(graph, plan));
  PLANC_RETURN_IF_ERROR(EmitPlan(graph, plan));
  return plan;
}

}  // namespace planc
