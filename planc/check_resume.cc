#include "planc/check_resume.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "kernels/instruction_set.h"
#include "nlohmann/json.hpp"
#include "planc/fit.h"
#include "planc/text.h"
#include "runtime/checkpoint/checkpoint_directory.h"
#include "runtime/checkpoint/data_changes.h"
#include "runtime/checkpoint/huggingface/initial_weights.h"
#include "runtime/checkpoint/job_changes.h"
#include "runtime/checkpoint/manifest.h"
#include "runtime/checkpoint/readable.h"
#include "runtime/checkpoint/run_checkpoints.h"
#include "runtime/checkpoint/run_record.h"
#include "runtime/checkpoint/saved_tensors.h"
#include "runtime/data/mapped_file.h"
#include "schemas/counted.h"
#include "schemas/status.h"

namespace planc {
namespace {

// Heap that reading a manifest takes at its peak, over the size of the file: its text, twice, the
// JSON tree and the parsed form. Measured, rounded up.
constexpr int64_t kManifestExpansion = 9;

constexpr char kFreshWay[] = "; or `planc run --fresh`, which begins a new run";

std::string BaseOf(const std::string& job_path) {
  const std::string parent = std::filesystem::path(job_path).parent_path().string();
  return parent.empty() ? "." : parent;
}

int64_t FileBytes(const std::string& path) {
  std::error_code error;
  const std::uintmax_t bytes = std::filesystem::file_size(path, error);
  return error ? 0 : static_cast<int64_t>(bytes);
}

bool IsCheckpoint(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(std::filesystem::path(path) / kManifestName, error);
}

}  // namespace

absl::StatusOr<Manifest> InspectCheckpoint(const std::string& checkpoint, bool named) {
  PLANC_ASSIGN_OR_RETURN(Manifest manifest, ReadManifest(checkpoint));
  const std::string name = std::filesystem::path(checkpoint).stem().string();  // without .old
  if (const std::optional<int64_t> step = StepOfName(name); step.has_value() && !named) {
    PLANC_RETURN_IF_ERROR(CheckStep({*step, checkpoint}, manifest.step));
  }
  SavedTensors saved(checkpoint, manifest);
  for (const auto& [name, file] : manifest.files) {
    PLANC_RETURN_IF_ERROR(saved.File(name).status());
  }
  return manifest;
}

namespace {

class ResumeChecker {
 public:
  ResumeChecker(const std::string& job_path, const LoadedPlan& loaded, const std::string& base,
                DiagnosticList* list)
      : job_path_(job_path),
        loaded_(loaded),
        base_(base.empty() ? BaseOf(job_path) : base),
        plan_(loaded.plan),
        list_(*list) {}

  std::optional<ResumeOutlook> Check(const std::string& path) {
    ResumeOutlook outlook;
    std::vector<std::string> candidates = CandidatesAt(path, &outlook);
    outlook.candidates = static_cast<int64_t>(candidates.size());
    for (size_t i = 0; i < candidates.size(); ++i) {
      absl::StatusOr<Manifest> manifest = InspectCheckpoint(candidates[i], outlook.named);
      if (manifest.ok()) {
        outlook.checkpoint = candidates[i];
        return Judge(*manifest, std::move(outlook));
      }
      if (!IsDamage(manifest.status()) || i + 1 == candidates.size()) {
        Report(DiagnosticCode::kCheckpointUnusable, manifest.status());
        return std::nullopt;
      }
      Report(DiagnosticCode::kCheckpointPassedOver, manifest.status());
    }
    return std::nullopt;
  }

 private:
  // Newest first. Reports when there are none.
  std::vector<std::string> CandidatesAt(const std::string& path, ResumeOutlook* outlook) {
    const bool own = path == "auto";
    const std::string place = own ? PathIn(base_, plan_.job.checkpoint().directory()) : path;
    outlook->named = !own && IsCheckpoint(place);
    if (outlook->named) return {place};
    if (own) return OwnCandidates(place, outlook);
    const absl::StatusOr<std::vector<CheckpointEntry>> entries = FindCheckpoints(place);
    if (!entries.ok()) {
      Report(DiagnosticCode::kCheckpointUnusable, entries.status());
      return {};
    }
    std::vector<std::string> paths = PathsOf(*entries);
    if (paths.empty()) ReportNone(place);
    return paths;
  }

  // Those that `auto` takes for the run in run.directory, as the run itself would.
  std::vector<std::string> OwnCandidates(const std::string& place, ResumeOutlook* outlook) {
    outlook->own = true;
    CheckpointSelection own;
    const absl::StatusOr<RunRecord> record =
        ReadRunRecord(PathIn(BaseOf(job_path_), plan_.job.run().directory()));
    if (record.ok()) own = SelectionOf(*record);
    const absl::StatusOr<AutoChoice> seen = ChooseForAuto(place, own);
    if (!seen.ok()) {
      Report(DiagnosticCode::kCheckpointUnusable, seen.status());
      return {};
    }
    const AutoChoice& choice = *seen;
    if (choice.candidates.empty() && !choice.others.empty()) {
      Report(DiagnosticCode::kCheckpointUnusable,
             absl::NotFoundError(absl::StrCat(place, ": the checkpoints here are of other runs (",
                                              absl::StrJoin(choice.others, ", "),
                                              "), which `auto` does not take")))
          .fix = "`--resume=PATH` with one of them, or `planc run --fresh`, which moves them aside";
    } else if (choice.candidates.empty()) {
      const std::string& initial = plan_.job.checkpoint().initial();
      Diagnostic& none = ReportNone(place);
      none.notes.push_back("with `checkpoint.resume: auto` the run starts anew");
      if (!initial.empty() && initial != "none") {
        none.notes.push_back(absl::StrCat("its weights are those of ", PathIn(base_, initial)));
        const absl::Status fits = CheckInitialWeights(PathIn(base_, initial), plan_);
        if (!fits.ok()) Report(DiagnosticCode::kCheckpointUnusable, fits);
      }
    }
    return PathsOf(choice.candidates);
  }

  // Newest first.
  static std::vector<std::string> PathsOf(const std::vector<CheckpointEntry>& entries) {
    std::vector<std::string> paths;
    for (const CheckpointEntry& entry : entries) paths.push_back(entry.path);
    std::reverse(paths.begin(), paths.end());
    return paths;
  }

  Diagnostic& ReportNone(const std::string& place) {
    return Report(
        DiagnosticCode::kCheckpointUnusable,
        absl::NotFoundError(absl::StrCat(place, ": there is no complete checkpoint here")));
  }

  Diagnostic& Report(DiagnosticCode code, const absl::Status& status) {
    return list_.Add(code, Span{job_path_}, std::string(status.message()));
  }

  std::optional<ResumeOutlook> Judge(const Manifest& manifest, ResumeOutlook outlook) {
    const absl::StatusOr<host::InstructionSet> here = host::DetectInstructionSet();
    outlook.check = CompareWithCheckpoint(
        plan_, manifest, here.ok() ? std::optional<host::InstructionSet>(*here) : std::nullopt);
    if (outlook.own)
      outlook.check.changes = JobChangesInRun(manifest.job, plan_.job, manifest.step);
    const absl::Status compared =
        AddDataChanges(manifest.data.has_value() ? &manifest.data->identity : nullptr, plan_.job,
                       base_, outlook.own, &outlook.check);
    if (!compared.ok()) {
      outlook.notices.push_back(
          absl::StrCat("the data cannot be compared: ", std::string(compared.message())));
    }
    if (!RefusalOf(outlook.check, outlook.checkpoint).ok()) {
      Refuse(outlook);
      return std::nullopt;
    }
    outlook.step = manifest.step;
    outlook.steps = plan_.job.run().steps();
    const std::vector<std::string> differences = NoticesOf(outlook.check, plan_, manifest);
    outlook.notices.insert(outlook.notices.end(), differences.begin(), differences.end());
    AddPosition(manifest, &outlook);
    outlook.size = LoadSizeOf(plan_, manifest);
    outlook.arena_bytes = RankBytes(FullestClass(plan_));
    outlook.manifest_bytes =
        kManifestExpansion * FileBytes(absl::StrCat(outlook.checkpoint, "/", kManifestName));
    return outlook;
  }

  // Where the run goes on in its data.
  void AddPosition(const Manifest& manifest, ResumeOutlook* outlook) {
    const absl::StatusOr<int64_t> tokens = TrainingTokens(plan_.job, base_);
    if (!tokens.ok() || *tokens <= plan_.job.batch().sequence()) return;
    const absl::StatusOr<DataPosition> position =
        PositionAfter(manifest, plan_.job, outlook->check.data, *tokens, &outlook->notices);
    if (!position.ok()) {
      outlook->notices.emplace_back(position.status().message());
      return;
    }
    outlook->position = *position;
  }

  // One diagnostic that points at all keys that differ.
  void Refuse(const ResumeOutlook& outlook) {
    const ResumeCheck& check = outlook.check;
    std::vector<LabeledSpan> places;
    std::vector<std::string> keys;
    std::vector<std::string> reasons;
    for (const JobChange& change : check.changes) {
      if (change.verdict != ChangeVerdict::kRefused) continue;
      keys.push_back(change.key);
      reasons.push_back(ChangeText(change));
      if (!loaded_.job.has_value()) continue;  // a plan file has no places
      const auto origin = loaded_.job->spec.origins.find(change.key);
      if (origin == loaded_.job->spec.origins.end() || origin->second.line == 0) continue;
      places.push_back(
          {{origin->second.file, origin->second.line, origin->second.column, origin->second.length},
           absl::StrCat(change.saved, " in the checkpoint")});
    }
    reasons.insert(reasons.end(), check.shapes.begin(), check.shapes.end());
    const size_t more = reasons.size() - 1;
    Diagnostic& diagnostic =
        Report(DiagnosticCode::kResumeRefused,
               absl::FailedPreconditionError(
                   absl::StrCat(outlook.checkpoint, " was saved by another job: ", reasons[0],
                                more == 0 ? "" : absl::StrCat(" (and ", more, " more)"))));
    if (!places.empty()) {
      diagnostic.span = places[0].span;
      diagnostic.label = places[0].label;
      diagnostic.secondary.assign(places.begin() + 1, places.end());
    }
    diagnostic.notes.assign(reasons.begin() + 1, reasons.end());
    if (!check.rates.empty()) diagnostic.notes.push_back(check.rates);
    diagnostic.fix = check.shapes.empty()
                         ? absl::StrCat("the old values, or `checkpoint.allow_changes: [",
                                        absl::StrJoin(keys, ", "), "]`",
                                        check.way.empty() ? "" : "; ", check.way)
                         : "a checkpoint of the same model: other shapes cannot be loaded";
    if (outlook.own) absl::StrAppend(&diagnostic.fix, kFreshWay);
  }

  const std::string& job_path_;
  const LoadedPlan& loaded_;
  const std::string base_;
  const Plan& plan_;
  DiagnosticList& list_;
};

std::string ChoiceText(const ResumeOutlook& outlook) {
  if (outlook.named) return "the checkpoint that is named";
  return absl::StrCat("the newest that is whole of ", Counted(outlook.candidates, "checkpoint"));
}

const char* VerdictName(ChangeVerdict verdict) {
  switch (verdict) {
    case ChangeVerdict::kRefused:
      return "refused";
    case ChangeVerdict::kAllowed:
      return "allowed";
    case ChangeVerdict::kNoticed:
      return "noticed";
    case ChangeVerdict::kLayout:
      return "layout";
  }
  return "?";
}

}  // namespace

std::optional<ResumeOutlook> CheckResume(const std::string& job_path, const LoadedPlan& loaded,
                                         const std::string& path, DiagnosticList* list,
                                         const std::string& base) {
  return ResumeChecker(job_path, loaded, base, list).Check(path);
}

std::string OutlookText(const ResumeOutlook& outlook) {
  std::string text = absl::StrCat("resume from ", outlook.checkpoint, ": works\n");
  const auto add = [&](const std::string& name, const std::string& value) {
    absl::StrAppend(
        &text, Wrap(absl::StrCat("  ", name, std::string(12 - name.size(), ' '), value), 12), "\n");
  };
  add("chosen", ChoiceText(outlook));
  add("step", outlook.step < outlook.steps
                  ? absl::StrCat(outlook.step, " of ", Counted(outlook.steps, "step"), " are done")
              : outlook.steps == 1 ? "the only step is done: nothing is left to train"
                                   : absl::StrCat("all ", outlook.steps,
                                                  " steps are done: nothing is left to train"));
  if (outlook.position.has_value()) {
    const DataPosition& position = *outlook.position;
    add("data", absl::StrFormat(
                    "%s and %s are done, %.2f epochs", Counted(position.samples, "sample"),
                    Counted(position.tokens, "token"), EpochsBefore(position, position.samples)));
  }
  if (outlook.check.SameBits()) {
    add("layout", outlook.check.data == DataChange::kSame
                      ? "as it was saved, and the data are the same as far as size and checksum "
                        "tell: with the same program the run goes on bit for bit"
                      : "as it was saved: with the same settings and data the run goes on bit for "
                        "bit; whether the data are the same is not known");
  }
  for (const std::string& notice : outlook.notices) add("notice", notice);
  const LoadSize& size = outlook.size;
  add("reads", absl::StrCat(BytesText(size.largest_bytes), " on rank ", size.largest_rank,
                            ", which reads the most; ", BytesText(size.all_ranks_bytes),
                            " on all ranks together; ", BytesText(size.saved_bytes), " are saved"));
  add("memory",
      absl::StrCat(BytesText(outlook.arena_bytes + outlook.manifest_bytes + size.tensor_bytes),
                   " while loading, besides the program itself: the arenas of the fullest rank, ",
                   BytesText(outlook.arena_bytes), "; ", BytesText(outlook.manifest_bytes),
                   " for the manifest; ", BytesText(size.tensor_bytes),
                   " of mapped file for one tensor at a time"));
  add("not read", absl::StrCat("the bytes of the tensors; `planc checkpoint verify ",
                               outlook.checkpoint, "` checks them all, and so does the run"));
  return text;
}

std::string OutlookJson(const ResumeOutlook& outlook) {
  nlohmann::ordered_json json = {
      {"checkpoint", outlook.checkpoint},
      {"candidates", outlook.candidates},
      {"step", outlook.step},
      {"steps", outlook.steps},
      {"same_layout", outlook.check.SameLayout()},
      {"same_data", DataChangeName(outlook.check.data)},
      {"same_bits", outlook.check.SameBits() && outlook.check.data == DataChange::kSame}};
  if (outlook.position.has_value()) {
    json["samples"] = outlook.position->samples;
    json["tokens"] = outlook.position->tokens;
  }
  json["changes"] = nlohmann::ordered_json::array();
  for (const JobChange& change : outlook.check.changes) {
    json["changes"].push_back({{"key", change.key},
                               {"saved", change.saved},
                               {"job", change.now},
                               {"verdict", VerdictName(change.verdict)}});
  }
  json["read_bytes"] = {{"largest", outlook.size.largest_bytes},
                        {"largest_rank", outlook.size.largest_rank},
                        {"all_ranks", outlook.size.all_ranks_bytes},
                        {"saved", outlook.size.saved_bytes}};
  json["memory_bytes"] = {{"arenas", outlook.arena_bytes},
                          {"manifest", outlook.manifest_bytes},
                          {"mapped", outlook.size.tensor_bytes}};
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace planc
