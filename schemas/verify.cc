#include "schemas/verify.h"

#include "absl/strings/str_cat.h"
#include "schemas/counted.h"
#include "schemas/verify_execute.h"
#include "schemas/verify_flat.h"
#include "schemas/verify_report.h"
#include "schemas/verify_simulate.h"

namespace planc {

using verifying::Executor;
using verifying::FlatPlan;
using verifying::Report;
using verifying::Simulator;

// First what can be read off the plan, then one execution of each program: later checks rely on
// what earlier ones have shown.
VerifyResult VerifyPlan(const Plan& plan) {
  VerifyResult result;
  Report report(&result);
  for (auto check : {verifying::CheckStructure, verifying::CheckPrograms, verifying::CheckBounds,
                     verifying::CheckTraining, verifying::CheckModel, verifying::CheckPrecision,
                     verifying::CheckCosts}) {
    check(plan, report);
    if (!report.ok()) return result;
  }
  const FlatPlan flat = verifying::Flatten(plan);
  if (verifying::CountCells(flat) > verifying::kMaxCells ||
      verifying::CountAccesses(flat) > verifying::kMaxAccesses) {
    report.Add("size",
               absl::StrCat("the plan has more than ", verifying::kMaxCells,
                            " cells of memory or accesses them more than ",
                            Counted(verifying::kMaxAccesses, "time"), "; it cannot be verified"));
    return result;
  }
  Executor executor(flat, report);
  Simulator simulator(flat, executor, report);
  for (ProgramKind kind :
       {ProgramKind::kInit, ProgramKind::kPublish, ProgramKind::kStep, ProgramKind::kEval}) {
    simulator.Run(kind);
    if (!report.ok()) return result;
  }
  return result;
}

}  // namespace planc
