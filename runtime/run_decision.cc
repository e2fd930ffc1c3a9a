#include "runtime/run_decision.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/checkpoint/durable_file.h"
#include "runtime/checkpoint/job_changes.h"
#include "runtime/checkpoint/manifest.h"
#include "runtime/checkpoint/resume_check.h"
#include "runtime/checkpoint/run_checkpoints.h"
#include "runtime/data/mapped_file.h"
#include "runtime/metrics/event_file.h"
#include "runtime/metrics/metrics_writer.h"
#include "schemas/status.h"

namespace planc {
namespace {

namespace fs = std::filesystem;

constexpr char kFreshWay[] = "--fresh to begin a new run; files and checkpoints are moved aside";

std::string Absolute(const std::string& path) {
  std::error_code error;
  const fs::path whole = fs::weakly_canonical(path, error);
  return error ? path : whole.string();
}

std::string RunText(const RunRecord& record) {
  return absl::StrCat("run ", record.id, " of job ", record.job.job(), " (",
                      RunStateName(record.state), ", begun ", record.began, ")");
}

// Decides for one start.
class Decider {
 public:
  Decider(const Plan& plan, const RunRequest& request, const RunFolders& folders)
      : plan_(plan),
        request_(request),
        folders_(folders),
        resume_(request.resume.value_or(plan.job.checkpoint().resume())) {}

  absl::StatusOr<RunDecision> New(bool used) {
    decision_.record.id = NewRunId();
    decision_.record.began = UtcNow();
    if (used && resume_ == "never") return UsedRefused("an older planc's run, without run.json");
    if (resume_ == "never") return Finish("never");
    if (resume_ != "auto") {
      decision_.record.initial = Absolute(PathIn(request_.base_directory, resume_));
      if (used) decision_.record.adopts_unidentified = true;
      return Finish(resume_);
    }
    const AutoChoice choice = ChooseForAuto(folders_.checkpoints, {});
    if (choice.candidates.empty() && !choice.others.empty()) return OthersRefused(choice);
    decision_.record.adopts_unidentified = choice.adopts_unidentified || used;
    if (choice.candidates.empty()) {
      Note("a new run: there is no checkpoint to go on from, so it begins at step 0");
      return Finish("never");
    }
    Note(absl::StrCat("the checkpoints in ", folders_.checkpoints,
                      " have no run id (an older planc, or an import): taken as this run's"));
    PLANC_RETURN_IF_ERROR(CheckChanges(choice.candidates, nullptr));
    return Finish("auto");
  }

  absl::StatusOr<RunDecision> GoOn(const RunRecord& before) {
    decision_.record = before;
    // A launcher's own restart goes on from what this run wrote, however it was begun.
    const bool restarted = request_.restart > 0 && request_.launch == before.launch &&
                           request_.restart > before.restart;
    const bool named = resume_ != "auto" && resume_ != "never";
    const std::string path = named ? Absolute(PathIn(request_.base_directory, resume_)) : "";
    if (resume_ == "never" && !restarted) return UsedRefused(RunText(before));
    if (named && path != before.initial && !restarted) return FromNamed(before, path);
    const AutoChoice choice =
        ChooseForAuto(folders_.checkpoints, {before.id, before.adopts_unidentified});
    PLANC_RETURN_IF_ERROR(CheckChanges(choice.candidates, &before.job));
    if (IsComplete(before)) {
      decision_.start.complete = true;
      return Finish("auto");
    }
    if (!choice.candidates.empty()) return Finish("auto");
    if (!before.initial.empty()) {
      Note(absl::StrCat("run ", before.id, " has no checkpoint of its own yet: it begins again ",
                        "from ", before.initial));
      return Finish(before.initial);
    }
    if (!choice.others.empty()) return OthersRefused(choice);
    Note(absl::StrCat("run ", before.id, " has no checkpoint yet: it begins again at step 0"));
    return Finish("never");
  }

 private:
  int64_t EndStep() const {
    const int64_t steps = plan_.job.run().steps();
    return std::min(steps, request_.stop_after.value_or(steps));
  }

  bool IsComplete(const RunRecord& before) const {
    return before.state == RunState::kCompleted && before.last_step >= EndStep();
  }

  void Note(const std::string& line) { decision_.start.notices.push_back(line); }

  // A checkpoint is named in the directory of a run.
  absl::StatusOr<RunDecision> FromNamed(const RunRecord& before, const std::string& path) {
    const absl::StatusOr<CheckpointIdentity> identity = ReadCheckpointIdentity(path);
    if (!identity.ok()) return Finish(resume_);  // loading it tells what is wrong
    const std::string& id = identity->run.id;
    if (id == before.id || (id.empty() && before.adopts_unidentified)) return Finish(resume_);
    return absl::FailedPreconditionError(absl::StrCat(
        folders_.run, " holds ", RunText(before), ", and ", path, " is a checkpoint of ",
        id.empty() ? "no known run" : absl::StrCat("run ", id), "; nothing was changed. Use\n",
        "  another run.directory for a run that begins from it, or\n  ", kFreshWay));
  }

  absl::Status UsedRefused(const std::string& run) const {
    return absl::FailedPreconditionError(
        absl::StrCat(folders_.run, " holds ", run,
                     ", and checkpoint.resume is never: nothing was changed. Use\n",
                     "  --resume=auto to go on with it, or\n  ", kFreshWay));
  }

  absl::Status OthersRefused(const AutoChoice& choice) const {
    return absl::FailedPreconditionError(absl::StrCat(
        folders_.checkpoints, " holds checkpoints of other runs (",
        absl::StrJoin(choice.others, ", "), ") and none of this one: nothing was changed. Use\n",
        "  --resume=PATH to begin from one of them,\n",
        "  another checkpoint.directory for a run of its own, or\n  ", kFreshWay));
  }

  // Whether the job is still that of the run; judged by its newest checkpoint that can be read, or
  // by its record when there is none.
  absl::Status CheckChanges(const std::vector<CheckpointEntry>& candidates,
                            const proto::Job* recorded) {
    ResumeCheck check;
    std::string name = absl::StrCat(folders_.run, "/", kRunRecordName);
    bool compared = false;
    for (auto entry = candidates.rbegin(); entry != candidates.rend() && !compared; ++entry) {
      const absl::StatusOr<Manifest> manifest = ReadManifest(entry->path);
      if (!manifest.ok() || !CheckStep(*entry, manifest->step).ok()) continue;
      check = CompareWithCheckpoint(plan_, *manifest);
      check.changes = JobChangesInRun(manifest->job, plan_.job);
      name = entry->path;
      compared = true;
    }
    if (!compared && recorded != nullptr) check.changes = JobChangesInRun(*recorded, plan_.job);
    const absl::Status refusal = RefusalOf(check, name);
    if (refusal.ok()) return refusal;
    return absl::Status(refusal.code(),
                        absl::StrCat(std::string(refusal.message()), ".\n  Or use ", kFreshWay));
  }

  absl::StatusOr<RunDecision> Finish(const std::string& resume) {
    RunRecord& record = decision_.record;
    record.job = plan_.job;
    record.plan_hash = request_.plan_hash;
    record.planc = request_.version;
    record.checkpoint_directory = Absolute(folders_.checkpoints);
    record.launch = request_.launch;
    record.restart = request_.restart;
    decision_.start.id = record.id;
    decision_.start.resume = resume;
    decision_.start.adopts_unidentified = record.adopts_unidentified;
    return std::move(decision_);
  }

  const Plan& plan_;
  const RunRequest& request_;
  const RunFolders& folders_;
  const std::string resume_;
  RunDecision decision_;
};

// What a run writes into its directory, run.json aside.
bool IsRunFile(const std::string& name) {
  static constexpr const char* kNames[] = {"plan.plan", "logs", "loss.svg", kMetricsName,
                                           kSupersededMetricsName};
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames) ||
         name.rfind("profile", 0) == 0 || IsEventFileName(name);
}

}  // namespace

absl::StatusOr<RunDecision> DecideRun(const Plan& plan, const RunRequest& request,
                                      const RunFolders& folders,
                                      const std::optional<RunRecord>& before, bool used) {
  Decider decider(plan, request, folders);
  return before.has_value() ? decider.GoOn(*before) : decider.New(used);
}

absl::StatusOr<std::string> SetRunAside(const RunFolders& folders,
                                        const std::optional<RunRecord>& before) {
  for (const CheckpointEntry& entry : ListCheckpoints(folders.checkpoints)) {
    PLANC_RETURN_IF_ERROR(SetCheckpointAside(folders.checkpoints, entry.path));
  }
  const std::string aside =
      absl::StrCat(folders.run, "/run-", before.has_value() ? before->id : "unknown");
  PLANC_RETURN_IF_ERROR(CreateDirectories(aside));
  std::vector<std::string> names;
  std::error_code error;
  fs::directory_iterator at(folders.run, error);
  for (; !error && at != fs::directory_iterator(); at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (IsRunFile(name)) names.push_back(name);
  }
  const std::string record = absl::StrCat(folders.run, "/", kRunRecordName);
  if (fs::exists(record, error)) names.emplace_back(kRunRecordName);
  for (const std::string& name : names) {
    PLANC_RETURN_IF_ERROR(
        RenamePath(absl::StrCat(folders.run, "/", name), FreePath(absl::StrCat(aside, "/", name))));
  }
  PLANC_RETURN_IF_ERROR(SyncDirectory(aside));
  PLANC_RETURN_IF_ERROR(SyncDirectory(folders.run));
  return aside;
}

}  // namespace planc
