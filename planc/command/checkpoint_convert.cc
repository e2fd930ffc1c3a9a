#include "planc/command/checkpoint_convert.h"

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "compiler/spec/scalar.h"
#include "planc/commands.h"
#include "planc/device_notice.h"
#include "planc/exit_codes.h"
#include "planc/init_job.h"
#include "planc/load_plan.h"
#include "planc/text.h"
#include "planc/versions.h"
#include "runtime/checkpoint/checkpoint_directory.h"
#include "runtime/checkpoint/file_system.h"
#include "runtime/checkpoint/huggingface/export.h"
#include "runtime/checkpoint/huggingface/import.h"
#include "runtime/checkpoint/huggingface/model_folder.h"
#include "schemas/counted.h"
#include "schemas/status.h"

namespace planc {
namespace {

void Print(const std::string& text, std::ostream& stream) { stream << Wrap(text, 2) << "\n"; }

int Fail(const std::string& action, const absl::Status& status, std::ostream& err) {
  Print(absl::StrCat("planc checkpoint ", action, ": ", std::string(status.message())), err);
  return ExitCodeOf(status);
}

// `path` itself, or the newest checkpoint in it.
absl::StatusOr<std::string> CheckpointAt(const std::string& path) {
  PLANC_ASSIGN_OR_RETURN(const std::vector<CheckpointEntry> entries, FindCheckpoints(path));
  return entries.empty() ? path : entries.back().path;
}

absl::StatusOr<ExportOptions> ReadOptions(const Flags& flags) {
  ExportOptions options;
  options.type = flags.Get("--dtype") == "bf16" ? ExportType::kBf16 : ExportType::kF32;
  const std::string text = flags.Get("--max-shard-size");
  const std::optional<ScalarError> error =
      ParseWhole(text, proto::UNIT_BYTES, options.most_file_bytes);
  if (error.has_value()) {
    return absl::InvalidArgumentError(absl::StrCat("--max-shard-size ", error->message));
  }
  if (options.most_file_bytes < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("--max-shard-size ", text, " is not at least one byte"));
  }
  return options;
}

// Writes a job for the model of a Hugging Face folder beside the checkpoint, which it resumes from.
// Returns its path.
absl::StatusOr<std::string> WriteJobFor(const std::string& folder, const std::string& checkpoint) {
  namespace fs = std::filesystem;
  fs::path place = fs::path(checkpoint).lexically_normal();
  if (!place.has_filename()) place = place.parent_path();
  const std::string path = place.string() + ".yaml";
  std::error_code error;
  if (fs::exists(path, error)) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": exists, and is not replaced; --job=", path, " imports for it"));
  }
  NewJob job;
  PLANC_ASSIGN_OR_RETURN(job.model, ModelOfFolder(folder));
  const std::string name = place.filename().string();
  job.name = JobNameFrom(name);
  job.device = kRunnableDevice;
  job.resume =
      absl::StrCat("\"./", absl::StrReplaceAll(name, {{"\\", "\\\\"}, {"\"", "\\\""}}), "\"");
  job.heading = {
      "Trains on from imported weights, the checkpoint beside this file, on one CPU "
      "process."};
  PLANC_ASSIGN_OR_RETURN(const std::string text, NewJobText(job));
  PLANC_RETURN_IF_ERROR(WriteFile(path, text));
  return path;
}

int ImportInto(const std::string& folder, const std::string& checkpoint, const std::string& job,
               const std::vector<std::string>& sets, std::ostream& out, std::ostream& err) {
  LoadedPlan loaded;
  const int code = LoadPlan("planc checkpoint import", job, sets, err, &loaded);
  if (code != kExitOk) return code;
  std::map<std::string, std::string> versions;
  for (const auto& [name, version] : LinkedVersions()) versions[name] = version;
  const absl::StatusOr<ImportReport> report =
      ImportFolder(folder, loaded.plan, versions, checkpoint, HostFileSystem());
  if (!report.ok()) return Fail("import", report.status(), err);
  for (const std::string& problem : report->problems) {
    Print(absl::StrCat("planc checkpoint import: ", folder, ": ", problem), err);
  }
  if (!report->problems.empty()) return kExitJobError;
  for (const std::string& ignored : report->ignored) {
    Print(absl::StrCat("not needed and left out: ", ignored), out);
  }
  Print(absl::StrCat(checkpoint, ": ", Counted(GroupedText(report->elements), "element"), " of ",
                     Counted(report->parameters, "parameter"), " from ", folder,
                     "; start from it with `planc run ", job, " --resume=", checkpoint, "`"),
        out);
  return kExitOk;
}

}  // namespace

int ExportCheckpoint(const std::string& checkpoint, const std::string& folder, const Flags& flags,
                     std::ostream& out, std::ostream& err) {
  const absl::StatusOr<ExportOptions> options = ReadOptions(flags);
  if (!options.ok()) return Fail("export", options.status(), err);
  const absl::StatusOr<std::string> at = CheckpointAt(checkpoint);
  if (!at.ok()) return Fail("export", at.status(), err);
  const std::string& source = *at;
  const absl::StatusOr<ExportReport> report =
      ExportFolder(source, folder, *options, HostFileSystem());
  if (!report.ok()) return Fail("export", report.status(), err);
  Print(absl::StrCat(folder, ": ", report->model_type, " from ", source, ", ",
                     Counted(GroupedText(report->tensors), "tensor"), ", ",
                     BytesText(report->bytes), " in ", Counted(report->files, "file")),
        out);
  return kExitOk;
}

int ImportCheckpoint(const std::string& folder, const std::string& checkpoint, const Flags& flags,
                     std::ostream& out, std::ostream& err) {
  std::string job = flags.Get("--job");
  if (job.empty()) {
    absl::StatusOr<std::string> written = WriteJobFor(folder, checkpoint);
    if (!written.ok()) return Fail("import", written.status(), err);
    job = *std::move(written);
  }
  const int code = ImportInto(folder, checkpoint, job, flags.All("--set"), out, err);
  if (flags.Has("--job")) return code;
  std::error_code error;
  if (code != kExitOk) {
    std::filesystem::remove(job, error);  // it would name a checkpoint that does not exist
  } else {
    Print(absl::StrCat(job, ": a job that starts from it on this machine; name its data, then `",
                       "planc check ", job, "`"),
          out);
  }
  return code;
}

}  // namespace planc
