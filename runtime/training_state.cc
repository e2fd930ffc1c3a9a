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

// Nothing where it is what the job says.
std::optional<std::string> InsteadOf(const Plan& plan, const RunStart& run) {
  return run.resume == plan.job.checkpoint().resume() ? std::nullopt : std::optional(run.resume);
}

}  // namespace

std::string CheckpointDirectory(const Plan& plan, const std::string& base) {
  return PathIn(base, plan.job.checkpoint().directory());
}

GroupOptions GroupOptionsOf(const RunOptions& options) {
  GroupOptions groups;
  groups.connect_timeout = options.connect_timeout;
  groups.agreement_timeout = options.agreement_timeout;
  groups.stall_timeout = options.stall.deadline;
  groups.instruction_set = options.instruction_set;
  return groups;
}

absl::StatusOr<RunStart> AgreeOnRun(const RunOptions& options, Groups* groups,
                                    Agreement& agreement) {
  if (options.run.has_value()) return *options.run;
  PLANC_RETURN_IF_ERROR(
      agreement.AllOk(options.check_memory ? options.check_memory() : absl::OkStatus()));
  PLANC_ASSIGN_OR_RETURN(RunStart run,
                         AgreeOnRun(options.begin_run, &groups->control(), agreement));
  if (run.complete) PLANC_RETURN_IF_ERROR(groups->Shutdown());
  return run;
}

SaveOptions SaveOptionsOf(const RunOptions& options, const RunStart& run, const Session& session,
                          const TrainingReport& report) {
  SaveOptions save;
  save.instruction_set = session.instruction_set();
  save.versions = options.versions;
  save.run_id = run.id;
  if (session.groups() != nullptr) save.storage = session.groups()->storage();
  save.before_commit = [&run, &report] {
    PLANC_RETURN_IF_ERROR(CheckStillOwned(run));
    return report.Sync();
  };
  return save;
}

absl::StatusOr<int64_t> PrepareState(const Session& session, ProgramRunner* runner,
                                     const RunOptions& options, const RunStart& run,
                                     Agreement& agreement, TrainingReport* report) {
  const Plan& plan = session.plan();
  ProgramInputs init;
  const std::string& base = options.base_directory;
  init.restoring = run.resume != "never";
  PLANC_RETURN_IF_ERROR(agreement.AllOk(StopHere()));
  PLANC_RETURN_IF_ERROR(runner->Run(ProgramKind::kInit, init));
  std::vector<std::string> notices;
  const absl::StatusOr<std::optional<int64_t>> result = ResumeTraining(
      plan, session.coordinates()[static_cast<int>(Axis::kTp)], CheckpointDirectory(plan, base),
      base, session.Shards(), agreement, &notices,
      [] { return ScopedStopSignals::Received() != 0; }, InsteadOf(plan, run),
      {run.id, run.adopts_unidentified}, session.instruction_set());
  for (const std::string& notice : notices) report->Note(notice);
  PLANC_ASSIGN_OR_RETURN(const std::optional<int64_t> resumed, result);
  if (init.restoring && !resumed.has_value()) {
    PLANC_RETURN_IF_ERROR(runner->Run(ProgramKind::kInit, ProgramInputs{}));
  }
  if (resumed.has_value()) report->Note(absl::StrCat("resumed after step ", *resumed));
  PLANC_RETURN_IF_ERROR(agreement.AllOk(StopHere()));
  PLANC_RETURN_IF_ERROR(agreement.AllOk(report->OpenFiles(run.id, resumed.value_or(0))));
  PLANC_RETURN_IF_ERROR(runner->Run(ProgramKind::kPublish, ProgramInputs{}));
  return resumed.value_or(0);
}

bool IsDue(int64_t every, int64_t done, bool at_end) {
  return at_end || (every > 0 && done % every == 0);
}

}  // namespace planc
