#include "runtime/training_state.h"

#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/checkpoint/load.h"
#include "runtime/data/mapped_file.h"
#include "schemas/status.h"

namespace planc {

std::string CheckpointDirectory(const Plan& plan, const std::string& base) {
  return PathIn(base, plan.job.checkpoint().directory());
}

absl::StatusOr<int64_t> PrepareState(const Session& session, ProgramRunner* runner,
                                     const std::string& base, Agreement& agreement,
                                     TrainingReport* report) {
  const Plan& plan = session.plan();
  PLANC_RETURN_IF_ERROR(runner->Run(ProgramKind::kInit, ProgramInputs{}));
  std::vector<std::string> notices;
  PLANC_ASSIGN_OR_RETURN(
      const std::optional<int64_t> resumed,
      ResumeTraining(plan, session.coordinates()[static_cast<int>(Axis::kTp)],
                     CheckpointDirectory(plan, base), base, session.Shards(), agreement, &notices));
  for (const std::string& notice : notices) report->Note(notice);
  if (resumed.has_value()) report->Note(absl::StrCat("resumed after step ", *resumed));
  PLANC_RETURN_IF_ERROR(report->OpenFiles(resumed.value_or(0)));
  PLANC_RETURN_IF_ERROR(runner->Run(ProgramKind::kPublish, ProgramInputs{}));
  return resumed.value_or(0);
}

absl::StatusOr<double> Validate(const Session& session, ProgramRunner* runner,
                                TokenSource* tokens) {
  const int64_t batches = session.plan().job.run().eval_batches();
  double sum = 0;
  for (int64_t batch = 0; batch < batches; ++batch) {
    ProgramInputs inputs;
    inputs.step = batch;
    inputs.tokens = tokens;
    PLANC_RETURN_IF_ERROR(runner->Run(ProgramKind::kEval, inputs));
    sum += session.EvalLoss();
  }
  return sum / static_cast<double>(batches);
}

bool IsDue(int64_t every, int64_t done, bool at_end) {
  return at_end || (every > 0 && done % every == 0);
}

}  // namespace planc
