#include "planc/resume_before_run.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <vector>

#include "compiler/diagnostics/render_text.h"
#include "planc/check_resume.h"
#include "planc/commands.h"
#include "planc/text.h"
#include "runtime/checkpoint/checkpoint_directory.h"
#include "runtime/checkpoint/manifest.h"
#include "runtime/checkpoint/readable.h"
#include "runtime/data/mapped_file.h"

namespace planc {
namespace {

namespace fs = std::filesystem;

// Whether there is something to read at all, or that cannot be told.
bool MayHaveCheckpoints(const std::string& path) {
  const absl::StatusOr<bool> named = IsFileThere((fs::path(path) / kManifestName).string());
  const absl::StatusOr<std::vector<CheckpointEntry>> entries = FindCheckpoints(path);
  return !named.ok() || *named || !entries.ok() || !entries->empty();
}

// Whether the newest checkpoint is there, of this format version, and broken.
bool IsDamaged(const std::string& path) {
  const absl::StatusOr<std::vector<CheckpointEntry>> entries = FindCheckpoints(path);
  if (!entries.ok() || !MayHaveCheckpoints(path)) return false;
  const bool named = entries->empty();
  return IsDamage(InspectCheckpoint(named ? path : entries->back().path, named).status());
}

bool IsRefusal(const DiagnosticList& list) {
  return std::any_of(list.entries().begin(), list.entries().end(), [](const Diagnostic& entry) {
    return entry.code == DiagnosticCode::kResumeRefused;
  });
}

}  // namespace

std::string ResumePath(const std::string& value) {
  if (value == "auto" || value == "never") return value;
  std::error_code error;
  const fs::path path = fs::absolute(value, error);
  return error ? value : path.lexically_normal().string();
}

int CheckResumeBeforeRun(const std::string& input, const LoadedPlan& loaded,
                         const std::string& base, std::optional<std::string>* resume_from,
                         std::ostream& err) {
  const proto::Checkpoint& checkpoint = loaded.plan.job.checkpoint();
  const std::string wanted = resume_from->value_or(checkpoint.resume());
  if (wanted == "never") return kExitOk;
  const bool automatic = wanted == "auto";
  const std::string place = PathIn(base, automatic ? checkpoint.directory() : wanted);
  // Under `auto` that is a run that starts anew.
  if (automatic && !MayHaveCheckpoints(place)) return kExitOk;
  DiagnosticList found;
  const std::optional<ResumeOutlook> outlook =
      CheckResume(input, loaded, automatic ? wanted : place, &found, base);
  if (outlook.has_value()) {
    // One checkpoint for all ranks, whatever is written to the folder meanwhile.
    const bool folder = !automatic && !outlook->named;
    if (folder) *resume_from = ResumePath(outlook->checkpoint);
    return kExitOk;
  }
  // Under `auto` the ranks agree on what is damaged; here only another job is refused.
  if (automatic && !IsRefusal(found)) return kExitOk;
  err << RenderText(found, loaded.job.has_value() ? loaded.job->sources : SourceTexts(),
                    ShowsColour(err));
  return IsRefusal(found) || !IsDamaged(place) ? kExitJobError : kExitTrainingFault;
}

}  // namespace planc
