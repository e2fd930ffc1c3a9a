// planc checkpoint: inspects checkpoints, checks every byte of them, and converts them to and from
// Hugging Face folders.
#include <algorithm>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planc/command/checkpoint_convert.h"
#include "planc/commands.h"
#include "planc/exit_codes.h"
#include "planc/flags.h"
#include "planc/text.h"
#include "runtime/checkpoint/checkpoint_directory.h"
#include "runtime/checkpoint/manifest.h"
#include "runtime/checkpoint/verify_checkpoint.h"
#include "schemas/counted.h"
#include "schemas/status.h"

namespace planc {
namespace {

int Fail(const std::string& problem, int code, std::ostream& err) {
  err << Wrap(absl::StrCat("planc checkpoint: ", problem), 2) << "\n";
  return code;
}

// The checkpoints that `path` stands for: itself, or those in it.
absl::StatusOr<std::vector<std::string>> CheckpointsAt(const std::string& path) {
  std::vector<std::string> paths;
  PLANC_ASSIGN_OR_RETURN(const std::vector<CheckpointEntry> entries, FindCheckpoints(path));
  for (const CheckpointEntry& entry : entries) paths.push_back(entry.path);
  if (paths.empty()) paths.push_back(path);
  return paths;
}

// One line for each folder in which a run left what it had saved beyond where it went back.
std::string SupersededText(const std::string& directory) {
  namespace fs = std::filesystem;
  std::vector<std::string> lines;
  std::error_code error;
  for (fs::recursive_directory_iterator at(directory, error), end; !error && at != end;
       at.increment(error)) {
    const std::string name = at->path().filename().string();
    const bool set_aside = name.rfind("superseded-", 0) == 0;
    if (set_aside || name.rfind("run-", 0) != 0) at.disable_recursion_pending();
    if (!set_aside) continue;
    std::vector<int64_t> steps;
    for (const CheckpointEntry& entry : ListCheckpoints(at->path().string())) {
      steps.push_back(entry.step);
    }
    lines.push_back(absl::StrCat(at->path().string(), ": ", steps.size() == 1 ? "step " : "steps ",
                                 absl::StrJoin(steps, ", "), "\n"));
  }
  std::sort(lines.begin(), lines.end());
  return absl::StrJoin(lines, "");
}

int64_t ElementsOf(const Manifest& manifest) {
  int64_t elements = 0;
  for (const auto& [name, parameter] : manifest.parameters) {
    elements += BoxElements(Box{{}, parameter.shape});
  }
  return elements;
}

int List(const std::vector<std::string>& directories, std::ostream& out, std::ostream& err) {
  TextTable table(
      {"checkpoint", "job", ">steps done", ">parameters", ">files", ">size", "finite when saved"});
  int code = kExitOk;
  for (const std::string& directory : directories) {
    const absl::StatusOr<std::vector<std::string>> paths = CheckpointsAt(directory);
    if (!paths.ok()) {
      code = Fail(std::string(paths.status().message()), ExitCodeOf(paths.status()), err);
      continue;
    }
    for (const std::string& path : *paths) {
      const absl::StatusOr<Manifest> manifest = ReadManifest(path);
      if (!manifest.ok()) {
        code = Fail(std::string(manifest.status().message()), ExitCodeOf(manifest.status()), err);
        continue;
      }
      int64_t bytes = 0;
      for (const auto& [name, file] : manifest->files) bytes += file.bytes;
      table.Add({path, manifest->job.job(), GroupedText(manifest->step),
                 GroupedText(ElementsOf(*manifest)), absl::StrCat(manifest->files.size()),
                 BytesText(bytes), manifest->finite ? "yes" : "not examined"});
    }
  }
  if (!table.empty()) out << table.Text(0);
  for (const std::string& directory : directories) out << Wrap(SupersededText(directory), 2);
  return code;
}

int Verify(const std::vector<std::string>& arguments, std::ostream& out, std::ostream& err) {
  int code = kExitOk;
  for (const std::string& argument : arguments) {
    const absl::StatusOr<std::vector<std::string>> paths = CheckpointsAt(argument);
    if (!paths.ok()) {
      code = Fail(std::string(paths.status().message()), ExitCodeOf(paths.status()), err);
      continue;
    }
    for (const std::string& path : *paths) {
      const absl::StatusOr<CheckpointReport> report = VerifyCheckpoint(path);
      if (!report.ok()) {
        code = Fail(std::string(report.status().message()), ExitCodeOf(report.status()), err);
        continue;
      }
      for (const std::string& defect : report->defects) {
        code = Fail(defect, kExitTrainingFault, err);
      }
      if (!report->defects.empty()) continue;
      out << Wrap(absl::StrCat(path, ": whole, all finite: ",
                               Counted(GroupedText(report->elements), "element"), " of ",
                               Counted(report->parameters, "parameter"), " in ",
                               Counted(report->tensors, "tensor"), ", ",
                               Counted(report->files, "file"), ", ", BytesText(report->bytes)),
                  2)
          << "\n";
    }
  }
  return code;
}

}  // namespace

int RunCheckpoint(const std::vector<std::string>& args, std::ostream& out, std::ostream& err) {
  const absl::StatusOr<Flags> flags = ParseFlags("checkpoint", args);
  if (!flags.ok()) return UsageError("checkpoint", flags.status(), err);
  const std::string& action = flags->positional[0];
  const std::vector<std::string> paths(flags->positional.begin() + 1, flags->positional.end());
  if (action == "export" || action == "import") {
    if (paths.size() != 2) {
      return UsageError("checkpoint",
                        absl::StrCat(action, " needs two paths, ", paths.size(), " are named"),
                        err);
    }
    return action == "export" ? ExportCheckpoint(paths[0], paths[1], *flags, out, err)
                              : ImportCheckpoint(paths[0], paths[1], *flags, out, err);
  }
  if (paths.empty()) return UsageError("checkpoint", action + " needs a path", err);
  return action == "ls" ? List(paths, out, err) : Verify(paths, out, err);
}

}  // namespace planc
