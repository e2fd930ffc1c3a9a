#include "runtime/training_state.h"

#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/checkpoint/resume.h"
#include "runtime/data/mapped_file.h"
#include "runtime/launch/signals.h"
#include "schemas/status.h"

namespace planc {
namespace {

// Cancelled when a signal has asked this rank to stop.
absl::Status StopHere() {
  const StopRequest request = ScopedStopSignals::Request();
  return request.signal == 0 ? absl::OkStatus() : absl::CancelledError(StopText(request));
}

}  // namespace

std::string CheckpointDirectory(const Plan& plan, const std::string& base) {
  return PathIn(base, plan.job.checkpoint().directory());
}

absl::StatusOr<int64_t> PrepareState(const Session& session, ProgramRunner* runner,
                                     const RunOptions& options, Agreement& agreement,
                                     TrainingReport* report) {
  const Plan& plan = session.plan();
  ProgramInputs init;
  const std::string& base = options.base_directory;
  const std::string resume = options.resume_from.value_or(plan.job.checkpoint().resume());
  init.restoring = resume != "never";
  PLANC_RETURN_IF_ERROR(agreement.AllOk(StopHere()));
  PLANC_RETURN_IF_ERROR(runner->Run(ProgramKind::kInit, init));
  std::vector<std::string> notices;
  const absl::StatusOr<std::optional<int64_t>> result = ResumeTraining(
      plan, session.coordinates()[static_cast<int>(Axis::kTp)], CheckpointDirectory(plan, base),
      base, session.Shards(), agreement, &notices,
      [] { return ScopedStopSignals::Received() != 0; }, options.resume_from,
      session.instruction_set());
  for (const std::string& notice : notices) report->Note(notice);
  PLANC_ASSIGN_OR_RETURN(const std::optional<int64_t> resumed, result);
  if (init.restoring && !resumed.has_value()) {
    PLANC_RETURN_IF_ERROR(runner->Run(ProgramKind::kInit, ProgramInputs{}));
  }
  if (resumed.has_value()) report->Note(absl::StrCat("resumed after step ", *resumed));
  PLANC_RETURN_IF_ERROR(agreement.AllOk(StopHere()));
  PLANC_RETURN_IF_ERROR(agreement.AllOk(report->OpenFiles(resumed.value_or(0))));
  PLANC_RETURN_IF_ERROR(runner->Run(ProgramKind::kPublish, ProgramInputs{}));
  return resumed.value_or(0);
}

bool IsDue(int64_t every, int64_t done, bool at_end) {
  return at_end || (every > 0 && done % every == 0);
}

}  // namespace planc
