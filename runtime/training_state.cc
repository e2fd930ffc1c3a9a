#include "runtime/training_state.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/checkpoint/checkpoint_directory.h"
#include "runtime/checkpoint/huggingface/initial_weights.h"
#include "runtime/checkpoint/last_save.h"
#include "runtime/checkpoint/manifest.h"
#include "runtime/checkpoint/probe.h"
#include "runtime/checkpoint/resume.h"
#include "runtime/checkpoint/run_checkpoints.h"
#include "runtime/checkpoint/watched_file_system.h"
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

// Told of calls to storage; may be null.
StorageWatch* StorageOf(const Session& session) {
  return session.groups() == nullptr ? nullptr : session.groups()->storage();
}

// What the run left behind when it went back is set aside once the checkpoint is loaded, and before
// a step is done. Later starts finish what one that was killed here has begun.
absl::Status SetSupersededAside(const Session& session, const RunStart& run,
                                const std::string& directory, Agreement& agreement) {
  absl::Status mine;
  if (session.rank() == 0 && !run.points.empty()) {
    mine = planc::SetSupersededAside(directory, SelectionOf(run)).status();
  }
  return agreement.AllOk(mine);
}

// The checkpoint that a run goes on from, as the parent of its next one; nothing for step 0 without
// one, and where its manifest cannot be read any more.
std::optional<ParentCheckpoint> TipOf(const RunStart& run, const std::string& directory,
                                      const std::string& base, int64_t resumed) {
  if (run.resume == "never") return std::nullopt;
  if (run.resume != "auto") {
    const absl::StatusOr<ParentCheckpoint> named = AsParent(PathIn(base, run.resume));
    return named.ok() ? std::optional<ParentCheckpoint>(*named) : std::nullopt;
  }
  for (const CheckpointEntry& entry : ListCheckpoints(directory)) {
    const absl::StatusOr<ParentCheckpoint> own = AsParent(entry.path);
    if (entry.step == resumed && own.ok()) return *own;
  }
  return std::nullopt;
}

}  // namespace

std::string CheckpointDirectory(const Plan& plan, const std::string& base) {
  return PathIn(base, plan.job.checkpoint().directory());
}

int64_t EndStep(const Plan& plan, const RunOptions& options) {
  const int64_t steps = plan.job.run().steps();
  return std::min(steps, options.stop_after.value_or(steps));
}

GroupOptions GroupOptionsOf(const Plan& plan, const RunOptions& options) {
  GroupOptions groups;
  groups.secret_folder = PathIn(options.base_directory, plan.job.run().directory());
  groups.connect_timeout = options.connect_timeout;
  groups.agreement_timeout = options.agreement_timeout;
  groups.stall_timeout = options.stall.deadline;
  groups.instruction_set = options.instruction_set;
  return groups;
}

absl::StatusOr<RunStart> AgreeOnRun(const RunOptions& options, Groups* groups, Agreement& agreement,
                                    TrainingData* data) {
  if (options.run.has_value()) {
    PLANC_RETURN_IF_ERROR(agreement.AllOk(data->CheckThatOf(*options.run)));
    return *options.run;
  }
  PLANC_RETURN_IF_ERROR(
      agreement.AllOk(options.check_memory ? options.check_memory() : absl::OkStatus()));
  PLANC_ASSIGN_OR_RETURN(RunStart run,
                         AgreeOnRun(options.begin_run, &groups->control(), agreement));
  if (run.complete) {
    PLANC_RETURN_IF_ERROR(groups->Shutdown());
    return run;
  }
  PLANC_RETURN_IF_ERROR(agreement.AllOk(data->CheckThatOf(run)));
  return run;
}

SaveOptions SaveOptionsOf(const RunOptions& options, const RunStart& run, const Session& session,
                          const TrainingData& data, const TrainingReport& report) {
  SaveOptions save;
  save.instruction_set = session.instruction_set();
  save.versions = options.versions;
  save.run_id = run.id;
  save.storage = StorageOf(session);
  save.keep_proven = true;
  save.data = [&data](int64_t step) { return data.SavedAfter(step); };
  save.branch = static_cast<int64_t>(run.points.size());
  if (session.rank() == 0) {
    save.tip = std::make_shared<std::optional<ParentCheckpoint>>(
        TipOf(run, CheckpointDirectory(session.plan(), options.base_directory),
              options.base_directory, report.resumed()));
  }
  save.before_commit = [&run, &report] {
    PLANC_RETURN_IF_ERROR(CheckStillOwned(run));
    return report.Sync();
  };
  return save;
}

absl::StatusOr<int64_t> PrepareState(const Session& session, ProgramRunner* runner,
                                     const RunOptions& options, const RunStart& run,
                                     Agreement& agreement, TrainingData* data,
                                     TrainingReport* report) {
  const Plan& plan = session.plan();
  ProgramInputs init;
  const std::string& base = options.base_directory;
  init.restoring = run.resume != "never" || !run.initial.empty();
  PLANC_RETURN_IF_ERROR(agreement.AllOk(StopHere()));
  PLANC_RETURN_IF_ERROR(runner->Run(ProgramKind::kInit, init));
  std::vector<std::string> notices;
  Manifest from;
  const absl::StatusOr<std::optional<int64_t>> result = ResumeTraining(
      plan, session.coordinates()[static_cast<int>(Axis::kTp)], CheckpointDirectory(plan, base),
      base, session.Shards(), agreement, &notices,
      [] { return ScopedStopSignals::Received() != 0; }, InsteadOf(plan, run), SelectionOf(run),
      session.instruction_set(), &from);
  for (const std::string& notice : notices) report->Note(notice);
  PLANC_ASSIGN_OR_RETURN(const std::optional<int64_t> resumed, result);
  if (!resumed.has_value() && !run.initial.empty()) {
    PLANC_RETURN_IF_ERROR(agreement.AllOk(LoadInitialWeights(
        run.initial, plan, session.coordinates()[static_cast<int>(Axis::kTp)], session.Shards())));
  } else if (init.restoring && !resumed.has_value()) {
    PLANC_RETURN_IF_ERROR(runner->Run(ProgramKind::kInit, ProgramInputs{}));
  }
  if (resumed.has_value()) {
    PLANC_RETURN_IF_ERROR(
        SetSupersededAside(session, run, CheckpointDirectory(plan, base), agreement));
  }
  if (resumed.has_value()) report->Note(absl::StrCat("resumed after step ", *resumed));
  notices.clear();
  PLANC_RETURN_IF_ERROR(
      agreement.AllOk(data->GoOn(resumed.has_value() ? &from : nullptr, &notices)));
  for (const std::string& notice : notices) report->Note(notice);
  for (const std::string& amount : data->Amounts(report->end())) report->Note(amount);
  report->Reads(data);
  if (resumed.value_or(0) > report->end()) {
    report->Note(NothingToDoText(report->end(), *resumed));
  }
  PLANC_RETURN_IF_ERROR(agreement.AllOk(StopHere()));
  const SavesToCome saves = {CheckpointDirectory(plan, base), run.id, resumed.value_or(0),
                             EndStep(plan, options)};
  const HostFileSystem host;
  const WatchedFileSystem files(host, StorageOf(session), StorageUse::kForeground);
  PLANC_RETURN_IF_ERROR(ProbeDirectory(plan, session.rank(), saves, agreement, files));
  PLANC_RETURN_IF_ERROR(agreement.AllOk(report->OpenFiles(run.id, resumed.value_or(0))));
  PLANC_RETURN_IF_ERROR(runner->Run(ProgramKind::kPublish, ProgramInputs{}));
  return resumed.value_or(0);
}

absl::Status FinishSaves(const Plan& plan, const RunOptions& options, Agreement& agreement,
                         TrainingReport* report, Checkpointer* checkpointer) {
  const auto told = [&](const std::string& line) {
    report->CheckpointsEnded(checkpointer->TakeEnded());
    report->Note(line);
  };
  return FinishSaves(
      report->done(), CheckpointDirectory(plan, options.base_directory), agreement, LastSaveRule{},
      [] { return ScopedStopSignals::Received() != 0; }, told, checkpointer);
}

bool IsDue(int64_t every, int64_t done, bool at_end) {
  return at_end || (every > 0 && done % every == 0);
}

}  // namespace planc
