#include "runtime/checkpoint/resume.h"

#include <algorithm>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "runtime/checkpoint/checkpoint_directory.h"
#include "runtime/checkpoint/load.h"
#include "runtime/checkpoint/manifest.h"
#include "runtime/checkpoint/readable.h"
#include "runtime/checkpoint/resume_check.h"
#include "runtime/data/mapped_file.h"
#include "schemas/counted.h"
#include "schemas/status.h"

namespace planc {
namespace {

// A network file system may show a machine an older state of a folder for a while.
constexpr int kListAttempts = 30;
constexpr absl::Duration kListPause = absl::Seconds(1);

// What one rank knows about a checkpoint that it has loaded.
struct Loaded {
  int64_t step = 0;
  std::vector<std::string> notices;  // about changes between the jobs
};

class Resume {
 public:
  Resume(const Plan& plan, int64_t tp, const std::vector<ShardView>& shards, Agreement& agreement,
         const std::function<bool()>& stop_requested,
         std::optional<host::InstructionSet> instruction_set, Manifest* from,
         std::vector<std::string>* notices)
      : plan_(plan),
        tp_(tp),
        shards_(shards),
        agreement_(agreement),
        stop_requested_(stop_requested),
        instruction_set_(instruction_set),
        from_(from),
        notices_(*notices) {}

  absl::StatusOr<std::optional<int64_t>> FromPath(const std::string& checkpoint,
                                                  const std::string& reason) {
    PLANC_ASSIGN_OR_RETURN(const Loaded loaded, LoadOnAll(checkpoint, std::nullopt));
    Announce(loaded, absl::StrCat("resuming from ", checkpoint, ", ", reason));
    return std::optional<int64_t>(loaded.step);
  }

  absl::StatusOr<std::optional<int64_t>> FromNewest(const std::string& directory,
                                                    const CheckpointSelection& selection) {
    PLANC_ASSIGN_OR_RETURN(std::vector<CheckpointEntry> entries, ListOnAll(directory, selection));
    if (entries.empty()) return std::optional<int64_t>();
    std::reverse(entries.begin(), entries.end());
    std::string newest_defect;
    for (size_t i = 0; i < entries.size(); ++i) {
      const std::string& path = entries[i].path;
      const absl::StatusOr<Loaded> loaded = LoadOnAll(path, entries[i].step);
      if (loaded.ok()) {
        Announce(*loaded,
                 absl::StrCat("resuming from ", path, ", the newest ", i == 0 ? "" : "undamaged ",
                              "checkpoint of ", entries.size(), " in ", directory));
        return std::optional<int64_t>(loaded->step);
      }
      if (!IsUnfit(loaded.status())) return loaded.status();
      const std::string defect(loaded.status().message());
      if (newest_defect.empty()) newest_defect = defect;
      notices_.push_back(absl::StrCat("warning: passing over ", path, ": ", defect));
    }
    return absl::DataLossError(absl::StrCat(directory, ": none of ",
                                            Counted(entries.size(), "checkpoint"),
                                            " can be read; the newest: ", newest_defect));
  }

 private:
  // The checkpoints in `directory`, once all ranks see the same ones.
  absl::StatusOr<std::vector<CheckpointEntry>> ListOnAll(const std::string& directory,
                                                         const CheckpointSelection& selection) {
    for (int attempt = 1;; ++attempt) {
      // One rank may see what another does not: all end with its reason.
      absl::StatusOr<std::vector<CheckpointEntry>> seen = SelectCheckpoints(directory, selection);
      PLANC_RETURN_IF_ERROR(agreement_.AllOk(seen.status()));
      std::vector<CheckpointEntry> entries = *std::move(seen);
      std::vector<std::string> names;
      for (const CheckpointEntry& entry : entries) {
        names.push_back(std::filesystem::path(entry.path).filename().string());
      }
      const absl::Status same = agreement_.SameEverywhere(
          absl::StrCat("checkpoints in ", directory), absl::StrJoin(names, " "));
      if (same.ok()) return entries;
      if (same.code() != absl::StatusCode::kFailedPrecondition || attempt == kListAttempts) {
        return absl::Status(
            same.code(),
            absl::StrCat(same.message(), "; all ranks must see the same checkpoint.directory"));
      }
      absl::SleepFor(kListPause);
    }
  }

  // `step`: what the folder's name says, if it was chosen for that.
  absl::StatusOr<Loaded> LoadHere(const std::string& checkpoint,
                                  const std::optional<int64_t>& step) const {
    if (stop_requested_ != nullptr && stop_requested_()) {
      return absl::CancelledError("asked to stop before a checkpoint was loaded");
    }
    PLANC_ASSIGN_OR_RETURN(const Manifest manifest, ReadManifest(checkpoint));
    if (step.has_value()) PLANC_RETURN_IF_ERROR(CheckStep({*step, checkpoint}, manifest.step));
    const ResumeCheck check = CompareWithCheckpoint(plan_, manifest, instruction_set_);
    PLANC_RETURN_IF_ERROR(RefusalOf(check, checkpoint));
    PLANC_RETURN_IF_ERROR(LoadTensors(plan_, tp_, checkpoint, manifest, shards_));
    if (from_ != nullptr) {
      from_->step = manifest.step;
      from_->job = manifest.job;
      from_->data = manifest.data;
    }
    return Loaded{manifest.step, NoticesOf(check, plan_, manifest)};
  }

  // The same verdict on every rank.
  absl::StatusOr<Loaded> LoadOnAll(const std::string& checkpoint,
                                   const std::optional<int64_t>& step) {
    absl::StatusOr<Loaded> loaded = LoadHere(checkpoint, step);
    PLANC_RETURN_IF_ERROR(agreement_.AllOk(loaded.status()));
    return loaded;
  }

  void Announce(const Loaded& loaded, const std::string& choice) {
    notices_.push_back(choice);
    notices_.insert(notices_.end(), loaded.notices.begin(), loaded.notices.end());
  }

  const Plan& plan_;
  const int64_t tp_;
  const std::vector<ShardView>& shards_;
  Agreement& agreement_;
  const std::function<bool()>& stop_requested_;
  const std::optional<host::InstructionSet> instruction_set_;
  Manifest* const from_;
  std::vector<std::string>& notices_;
};

}  // namespace

absl::StatusOr<std::optional<int64_t>> ResumeTraining(
    const Plan& plan, int64_t tp, const std::string& directory, const std::string& base,
    const std::vector<ShardView>& shards, Agreement& agreement, std::vector<std::string>* notices,
    const std::function<bool()>& stop_requested, const std::optional<std::string>& instead,
    const CheckpointSelection& selection, std::optional<host::InstructionSet> instruction_set,
    Manifest* from) {
  const std::string resume = instead.value_or(plan.job.checkpoint().resume());
  if (resume == "never") return std::optional<int64_t>();
  Resume request(plan, tp, shards, agreement, stop_requested, instruction_set, from, notices);
  if (resume == "auto") return request.FromNewest(directory, selection);
  return request.FromPath(PathIn(base, resume), instead.has_value()
                                                    ? "as the command line asks"
                                                    : "which checkpoint.resume names");
}

}  // namespace planc
