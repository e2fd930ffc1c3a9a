#include "runtime/owned_run.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/checkpoint/checkpoint_directory.h"
#include "runtime/checkpoint/durable_file.h"
#include "runtime/checkpoint/manifest.h"
#include "runtime/checkpoint/newest_checkpoint.h"
#include "runtime/data/mapped_file.h"
#include "runtime/metrics/metrics_writer.h"
#include "runtime/run_decision.h"
#include "schemas/exit_code.h"
#include "schemas/status.h"

namespace planc {
namespace {

namespace fs = std::filesystem;

// OK when files can be made in the folder, which is made where it does not exist. Errors:
// FailedPrecondition with the system's reason.
absl::Status MakeWritable(const std::string& folder) {
  const absl::Status made = CreateDirectories(folder);
  if (!made.ok()) return absl::FailedPreconditionError(made.message());
  if (access(folder.c_str(), R_OK | W_OK | X_OK) == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(folder, ": cannot be written: ", std::strerror(errno)));
}

bool IsSameFolder(const std::string& a, const std::string& b) {
  std::error_code error;
  return fs::equivalent(a, b, error) && !error;
}

// An unreadable record is neither that of a run to go on with nor nothing.
absl::StatusOr<std::optional<RunRecord>> RecordIn(const RunFolders& folders, bool fresh) {
  absl::StatusOr<RunRecord> record = ReadRunRecord(folders.run);
  if (record.ok()) return std::optional<RunRecord>(*std::move(record));
  if (absl::IsNotFound(record.status()) || fresh) return std::optional<RunRecord>();
  return absl::FailedPreconditionError(
      absl::StrCat(std::string(record.status().message()),
                   ", so what run is here is unknown. Put it back, or use --fresh to begin a new "
                   "run; files and checkpoints are moved aside"));
}

}  // namespace

RunFolders FoldersOf(const Plan& plan, const std::string& base_directory) {
  return {PathIn(base_directory, plan.job.run().directory()),
          PathIn(base_directory, plan.job.checkpoint().directory())};
}

absl::StatusOr<std::unique_ptr<OwnedRun>> OwnedRun::Begin(const Plan& plan,
                                                          const RunRequest& request) {
  RunFolders folders = FoldersOf(plan, request.base_directory);
  PLANC_RETURN_IF_ERROR(WithContext(MakeWritable(folders.run), "run.directory"));
  std::vector<std::unique_ptr<RunLock>> locks(1);
  PLANC_ASSIGN_OR_RETURN(locks[0], RunLock::Take(folders.run, request.lock));
  const absl::Status saves = WithContext(MakeWritable(folders.checkpoints), "checkpoint.directory");
  if (saves.ok() && !IsSameFolder(folders.run, folders.checkpoints)) {
    PLANC_ASSIGN_OR_RETURN(locks.emplace_back(), RunLock::Take(folders.checkpoints, request.lock));
  }
  PLANC_ASSIGN_OR_RETURN(std::optional<RunRecord> before, RecordIn(folders, request.fresh));
  // A run without a place for checkpoints would lose its training. One that is complete needs none.
  const bool may_be_complete =
      !request.fresh && before.has_value() && before->state == RunState::kCompleted;
  if (!may_be_complete) PLANC_RETURN_IF_ERROR(saves);
  std::error_code error;
  const bool used =
      before.has_value() || fs::exists(absl::StrCat(folders.run, "/", kMetricsName), error);
  std::unique_ptr<OwnedRun> run(new OwnedRun(folders, std::move(locks)));
  std::string aside;
  if (request.fresh) {
    PLANC_ASSIGN_OR_RETURN(const std::vector<CheckpointEntry> there,
                           FindCheckpoints(folders.checkpoints));
    if (used || !there.empty()) {
      PLANC_ASSIGN_OR_RETURN(aside, SetRunAside(folders, before));
    }
  }
  PLANC_ASSIGN_OR_RETURN(RunDecision decision,
                         DecideRun(plan, request, folders, request.fresh ? std::nullopt : before,
                                   used && !request.fresh));
  run->start_ = std::move(decision.start);
  run->record_ = std::move(decision.record);
  for (const std::unique_ptr<RunLock>& lock : run->locks_) {
    run->start_.locks.push_back(fs::absolute(lock->path()).string());
  }
  if (!aside.empty()) run->start_.notices.push_back(absl::StrCat("what was there is in ", aside));
  if (run->start_.complete) return run;
  PLANC_RETURN_IF_ERROR(saves);
  ++run->record_.starts;
  run->record_.state = RunState::kRunning;
  run->record_.exit_code.reset();
  run->record_.tip = run->Tip();
  PLANC_RETURN_IF_ERROR(WriteRunRecord(folders.run, run->record_));
  return run;
}

absl::StatusOr<bool> OwnedRun::HasWritten() const {
  PLANC_ASSIGN_OR_RETURN(const std::vector<CheckpointEntry> own,
                         SelectCheckpoints(folders_.checkpoints, SelectionOf(record_)));
  if (own.empty()) return false;
  const std::vector<WayBack>& ways = record_.ways_back;
  std::error_code error;
  // A way back counts once it was gone; and it may lead to where `auto` does not look.
  return ways.empty() ||
         (own.back().step >= ways.back().point.step &&
          fs::exists(SupersededFolder(folders_.checkpoints, record_.id, ways.size()), error));
}

std::optional<ParentCheckpoint> OwnedRun::Tip() const {
  const std::string newest = NewestCheckpoint();
  const absl::StatusOr<ParentCheckpoint> tip = AsParent(newest);
  return newest.empty() || !tip.ok() ? std::nullopt : std::optional<ParentCheckpoint>(*tip);
}

std::string OwnedRun::NewestCheckpoint() const {
  const std::optional<CheckpointEntry> newest =
      planc::NewestCheckpoint(folders_.checkpoints, SelectionOf(record_));
  return newest.has_value() ? newest->path : "";
}

int64_t OwnedRun::CodeAfter(const RunFault& fault, std::string* notice) {
  RunFault counted = fault;
  const std::optional<CheckpointEntry> newest =
      planc::NewestCheckpoint(folders_.checkpoints, SelectionOf(record_));
  counted.checkpoint_step = newest.has_value() ? newest->step : 0;
  record_.fault = CountedFault(counted, record_.fault);
  *notice = RepetitionText(*record_.fault);
  return CodeOfFault(*record_.fault);
}

absl::Status OwnedRun::End(int64_t exit_code) {
  if (exit_code == kExitOk || exit_code == kExitStopped) record_.fault.reset();
  if (start_.complete) return absl::OkStatus();
  PLANC_RETURN_IF_ERROR(CheckStillOwned(start_));
  const std::optional<CheckpointEntry> newest =
      planc::NewestCheckpoint(folders_.checkpoints, SelectionOf(record_));
  record_.last_step = LastMetricsStep(folders_.run);
  // There is a row of the last step when all are done, and a checkpoint of it when a signal came or
  // its row was lost.
  if (newest.has_value()) {
    record_.last_step = std::max(record_.last_step, newest->step);
  }
  record_.tip = Tip();
  record_.exit_code = exit_code;
  const bool done = exit_code == kExitOk && record_.last_step >= record_.job.run().steps();
  record_.state = done                                                ? RunState::kCompleted
                  : exit_code == kExitOk || exit_code == kExitStopped ? RunState::kStopped
                                                                      : RunState::kFailed;
  return WriteRunRecord(folders_.run, record_);
}

int64_t LastMetricsStep(const std::string& directory) {
  const absl::StatusOr<std::vector<StepMetrics>> rows =
      ReadMetrics(absl::StrCat(directory, "/", kMetricsName));
  return rows.ok() && !rows->empty() ? rows->back().step : 0;
}

}  // namespace planc
