#include "runtime/run_decision.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/checkpoint/data_changes.h"
#include "runtime/checkpoint/durable_file.h"
#include "runtime/checkpoint/huggingface/initial_weights.h"
#include "runtime/checkpoint/job_changes.h"
#include "runtime/checkpoint/json_fields.h"
#include "runtime/checkpoint/manifest.h"
#include "runtime/checkpoint/resume_check.h"
#include "runtime/checkpoint/run_checkpoints.h"
#include "runtime/data/mapped_file.h"
#include "runtime/metrics/event_file.h"
#include "runtime/metrics/metrics_writer.h"
#include "schemas/counted.h"
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

// What a launcher calls its job. Slurm counts restarts of the job, whose steps have numbers behind
// a dot that may differ.
std::string JobOf(const std::string& launch) {
  const std::string slurm = LaunchSourceName(LaunchSource::kSlurm);
  return launch.rfind(slurm, 0) == 0 ? launch.substr(0, launch.rfind('.')) : launch;
}

// Decides for one start.
class Decider {
 public:
  Decider(const Plan& plan, const RunRequest& request, const RunFolders& folders)
      : plan_(plan),
        request_(request),
        folders_(folders),
        resume_(request.resume.value_or(plan.job.checkpoint().resume())) {}

  // Whether the start goes on from what the run wrote, whatever is asked for.
  bool ByItself(const RunRecord& before) const {
    if (IsRestart(before)) return true;
    if (!IsNamed()) return false;
    const std::string path = NamedPath();
    // A path on the command line asks to go back once more.
    const bool from_job = !request_.resume.has_value();
    return path == before.initial ||
           (from_job && !before.ways_back.empty() && before.ways_back.back().path == path);
  }

  absl::StatusOr<RunDecision> New(bool used) {
    decision_.record.id = NewRunId();
    decision_.record.began = UtcNow();
    if (used && resume_ == "never") return UsedRefused("an older planc's run, without run.json");
    if (resume_ == "never") return FromBeginning();
    if (resume_ != "auto") {
      decision_.record.initial = NamedPath();
      if (used) decision_.record.adopts_unidentified = true;
      PLANC_RETURN_IF_ERROR(CheckAnythingLeft(decision_.record.initial));
      return Finish(resume_);
    }
    PLANC_ASSIGN_OR_RETURN(const AutoChoice choice, ChooseForAuto(folders_.checkpoints, {}));
    if (choice.candidates.empty() && !choice.others.empty()) return OthersRefused(choice);
    decision_.record.adopts_unidentified = choice.adopts_unidentified || used;
    if (choice.candidates.empty()) {
      Note("a new run: there is no checkpoint to go on from, so it begins at step 0");
      return FromBeginning();
    }
    Note(absl::StrCat("the checkpoints in ", folders_.checkpoints,
                      " have no run id (an older planc, or an import): taken as this run's"));
    PLANC_RETURN_IF_ERROR(CheckChanges(choice.candidates, nullptr));
    return Finish("auto");
  }

  absl::StatusOr<RunDecision> GoOn(const RunRecord& before) {
    decision_.record = before;
    if (resume_ == "never" && !ByItself(before)) return UsedRefused(RunText(before));
    if (WayBackIsPending()) {
      if (IsRestart(before)) return Finish(before.ways_back.back().path);
      decision_.record.ways_back.pop_back();  // it ended before it had gone back
    }
    PLANC_ASSIGN_OR_RETURN(
        const AutoChoice choice,
        ChooseForAuto(folders_.checkpoints, planc::SelectionOf(decision_.record)));
    if (IsNamed() && !ByItself(before)) return FromNamed(before, NamedPath(), choice);
    PLANC_RETURN_IF_ERROR(CheckChanges(choice.candidates, &before));
    const int64_t newest = NewestStep(choice.candidates);
    if (IsComplete(before)) return NothingToDo(before);
    const std::vector<WayBack>& ways = decision_.record.ways_back;
    // What it went back to may lie elsewhere, among what it had left behind before.
    if (!ways.empty() && newest < ways.back().point.step) return Finish(ways.back().path);
    if (!choice.candidates.empty()) return Finish("auto");
    if (!before.initial.empty()) {
      Note(absl::StrCat("run ", before.id, " has no checkpoint of its own yet: it begins again ",
                        "from ", before.initial));
      return Finish(before.initial);
    }
    if (!choice.others.empty()) return OthersRefused(choice);
    Note(absl::StrCat("run ", before.id, " has no checkpoint yet: it begins again at step 0"));
    return FromBeginning();
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

  bool IsNamed() const { return resume_ != "auto" && resume_ != "never"; }
  std::string NamedPath() const { return Absolute(PathIn(request_.base_directory, resume_)); }

  // A launcher's own restart.
  bool IsRestart(const RunRecord& before) const {
    return request_.restart > 0 && JobOf(request_.launch) == JobOf(before.launch) &&
           request_.restart > before.restart;
  }

  // Whether the last way back is recorded, and no rank has gone it.
  bool WayBackIsPending() const {
    const size_t count = decision_.record.ways_back.size();
    std::error_code error;
    return count > 0 &&
           !fs::exists(SupersededFolder(folders_.checkpoints, decision_.record.id, count), error);
  }

  // The step of the newest of its checkpoints whose manifest can be read; -1: there is none.
  static int64_t NewestStep(const std::vector<CheckpointEntry>& candidates) {
    for (auto entry = candidates.rbegin(); entry != candidates.rend(); ++entry) {
      const absl::StatusOr<CheckpointIdentity> identity = ReadCheckpointIdentity(entry->path);
      if (identity.ok() && identity->step == entry->step) return entry->step;
    }
    return -1;
  }

  absl::StatusOr<RunDecision> FromBeginning() {
    const std::string& initial = plan_.job.checkpoint().initial();
    if (!initial.empty() && initial != "none") {
      decision_.record.initial_weights = Absolute(PathIn(request_.base_directory, initial));
      decision_.start.initial = decision_.record.initial_weights;
      PLANC_RETURN_IF_ERROR(CheckInitialWeights(decision_.start.initial, plan_));
      Note(absl::StrCat("its weights are those of ", decision_.start.initial));
    }
    return Finish("never");
  }

  absl::StatusOr<RunDecision> NothingToDo(const RunRecord& before) {
    decision_.start.complete = true;
    if (before.last_step > EndStep()) Note(NothingToDoText(EndStep(), before.last_step));
    return Finish("auto");
  }

  // A run that begins from a checkpoint has steps to do.
  absl::Status CheckAnythingLeft(const std::string& path) const {
    const absl::StatusOr<CheckpointIdentity> identity = ReadCheckpointIdentity(path);
    if (!identity.ok() || identity->step < EndStep()) return absl::OkStatus();
    return absl::FailedPreconditionError(
        absl::StrCat("nothing to do: ", path, " is of step ", identity->step, ", and ",
                     Counted(EndStep(), "step"), " are asked for. Use\n  more run.steps, or\n",
                     "  checkpoint.initial: ", path,
                     ", with which a new run begins at step 0 with its weights"));
  }

  // A checkpoint is named in the directory of a run.
  absl::StatusOr<RunDecision> FromNamed(const RunRecord& before, const std::string& path,
                                        const AutoChoice& choice) {
    const absl::StatusOr<CheckpointIdentity> identity = ReadCheckpointIdentity(path);
    if (!identity.ok()) return Finish(resume_);  // loading it tells what is wrong
    const std::string& id = identity->run.id;
    if (id != before.id && !(id.empty() && before.adopts_unidentified)) {
      return absl::FailedPreconditionError(absl::StrCat(
          folders_.run, " holds ", RunText(before), ", and ", path, " is a checkpoint of ",
          id.empty() ? "no known run" : absl::StrCat("run ", id), "; nothing was changed. Use\n",
          "  another run.directory for a run that begins from it, or\n  ", kFreshWay));
    }
    PLANC_RETURN_IF_ERROR(CheckAnythingLeft(path));
    std::vector<WayBack>& ways = decision_.record.ways_back;
    const BranchPoint point = {identity->run.branch, identity->step};
    const bool on_chain =
        IsOnChain(planc::SelectionOf(decision_.record).points, point.branch, point.step);
    const int64_t newest = NewestStep(choice.candidates);
    if (on_chain && newest <= point.step) return Finish(resume_);
    ways.push_back({point, path});
    Note(absl::StrCat("the run goes back to step ", point.step,
                      "; what it saved after that, up to ", "step ", newest, ", is set aside in ",
                      SupersededFolder(folders_.checkpoints, before.id, ways.size())));
    return Finish(resume_);
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

  absl::Status AddChangesSince(const DataIdentity* then, ResumeCheck* check) const {
    return AddDataChanges(then, plan_.job, request_.base_directory, /*in_run=*/true, check);
  }

  // Whether the job is still that of the run; judged by its newest checkpoint that can be read, or
  // by its record when there is none.
  absl::Status CheckChanges(const std::vector<CheckpointEntry>& candidates,
                            const RunRecord* recorded) {
    ResumeCheck check;
    std::string name = absl::StrCat(folders_.run, "/", kRunRecordName);
    bool compared = false;
    for (auto entry = candidates.rbegin(); entry != candidates.rend() && !compared; ++entry) {
      const absl::StatusOr<Manifest> manifest = ReadManifest(entry->path);
      if (!manifest.ok() || !CheckStep(*entry, manifest->step).ok()) continue;
      check = CompareWithCheckpoint(plan_, *manifest);
      check.changes = JobChangesInRun(manifest->job, plan_.job, manifest->step);
      PLANC_RETURN_IF_ERROR(AddChangesSince(
          manifest->data.has_value() ? &manifest->data->identity : nullptr, &check));
      name = entry->path;
      compared = true;
    }
    if (!compared && recorded != nullptr) {
      check.changes = JobChangesInRun(recorded->job, plan_.job, 0);
      PLANC_RETURN_IF_ERROR(
          AddChangesSince(recorded->data.has_value() ? &*recorded->data : nullptr, &check));
    }
    const absl::Status refusal = RefusalOf(check, name);
    if (refusal.ok()) return refusal;
    return absl::Status(refusal.code(),
                        absl::StrCat(std::string(refusal.message()), ".\n  Or use ", kFreshWay));
  }

  absl::StatusOr<RunDecision> Finish(const std::string& resume) {
    RunRecord& record = decision_.record;
    record.job = plan_.job;
    record.plan_hash = request_.plan_hash;
    record.data = request_.data;
    if (record.data.has_value()) decision_.start.data = HexText(ChecksumOf(*record.data));
    record.planc = request_.version;
    record.checkpoint_directory = Absolute(folders_.checkpoints);
    record.launch = request_.launch;
    record.restart = request_.restart;
    decision_.start.id = record.id;
    decision_.start.plan_hash = request_.plan_hash;
    decision_.start.resume = resume;
    decision_.start.adopts_unidentified = record.adopts_unidentified;
    decision_.start.points = planc::SelectionOf(record).points;
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

bool GoesOnByItself(const Plan& plan, const RunRequest& request) {
  const RunFolders folders = FoldersOf(plan, request.base_directory);
  const absl::StatusOr<RunRecord> record = ReadRunRecord(folders.run);
  return record.ok() && Decider(plan, request, folders).ByItself(*record);
}

absl::StatusOr<std::string> SetRunAside(const RunFolders& folders,
                                        const std::optional<RunRecord>& before) {
  PLANC_ASSIGN_OR_RETURN(const std::vector<CheckpointEntry> entries,
                         FindCheckpoints(folders.checkpoints));
  for (const CheckpointEntry& entry : entries) {
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
