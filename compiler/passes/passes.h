#ifndef PLANC_COMPILER_PASSES_PASSES_H_
#define PLANC_COMPILER_PASSES_PASSES_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/graph/step_graph.h"
#include "schemas/plan.h"

namespace planc {

// The passes, in order; each is in the file of its name. Every pass leaves a graph whose layouts
// check (compiler/graph/layout_rules.h); an error is a fault of the compiler, not of the job.
//
//   X(Name, name)
#define PLANC_PASSES(X)                       \
  X(PartitionModel, partition_model)          \
  X(PlaceParameters, place_parameters)        \
  X(BuildForward, build_forward)              \
  X(BuildBackward, build_backward)            \
  X(InsertRecompute, insert_recompute)        \
  X(InsertGradientSync, insert_gradient_sync) \
  X(InsertOptimizer, insert_optimizer)        \
  X(InsertTransfers, insert_transfers)        \
  X(ShareSlots, share_slots)                  \
  X(PlanMemory, plan_memory)                  \
  X(AssignStreams, assign_streams)

#define PLANC_DECLARE_PASS(Name, name) absl::Status Name(StepGraph& graph);
PLANC_PASSES(PLANC_DECLARE_PASS)
#undef PLANC_DECLARE_PASS

// The calls of every program of every stage, with the slot of every binding; and how many slots
// each pool needs. Needs the bindings that PlanMemory fixed.
absl::Status SchedulePrograms(const StepGraph& graph, Plan& plan);

// StepGraph and schedule as a Plan: buffers, instructions, arenas, costs.
absl::Status EmitPlan(const StepGraph& graph, Plan& plan);

}  // namespace planc

#endif  // PLANC_COMPILER_PASSES_PASSES_H_
