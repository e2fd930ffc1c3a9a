// planc checkpoint: inspects checkpoints and checks every byte of them.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "planc/commands.h"
#include "planc/flags.h"
#include "planc/text.h"
#include "runtime/checkpoint/checkpoint_directory.h"
#include "runtime/checkpoint/manifest.h"
#include "runtime/checkpoint/verify_checkpoint.h"

namespace planc {
namespace {

int Fail(const std::string& problem, int code, std::ostream& err) {
  err << Wrap(absl::StrCat("planc checkpoint: ", problem), 2) << "\n";
  return code;
}

int Usage(const std::string& problem, std::ostream& err) {
  Fail(problem, kExitJobError, err);
  err << "usage: planc checkpoint ls DIRECTORY...      the complete checkpoints in a folder\n"
         "       planc checkpoint verify CHECKPOINT... check every byte\n";
  return kExitJobError;
}

// The checkpoints that `path` stands for: itself, or those in it.
std::vector<std::string> CheckpointsAt(const std::string& path) {
  std::vector<std::string> paths;
  for (const CheckpointEntry& entry : ListCheckpoints(path)) paths.push_back(entry.path);
  if (paths.empty()) paths.push_back(path);
  return paths;
}

int64_t ElementsOf(const Manifest& manifest) {
  int64_t elements = 0;
  for (const auto& [name, parameter] : manifest.parameters) {
    elements += BoxElements(Box{{}, parameter.shape});
  }
  return elements;
}

int List(const std::vector<std::string>& directories, std::ostream& out, std::ostream& err) {
  TextTable table({"checkpoint", "job", ">steps done", ">parameters", ">files", ">size"});
  int code = kExitOk;
  for (const std::string& directory : directories) {
    for (const std::string& path : CheckpointsAt(directory)) {
      const absl::StatusOr<Manifest> manifest = ReadManifest(path);
      if (!manifest.ok()) {
        code = Fail(std::string(manifest.status().message()),
                    absl::IsNotFound(manifest.status()) ? kExitJobError : kExitTrainingFault, err);
        continue;
      }
      int64_t bytes = 0;
      for (const auto& [name, file] : manifest->files) bytes += file.bytes;
      table.Add({path, manifest->job.job(), GroupedText(manifest->step),
                 GroupedText(ElementsOf(*manifest)), absl::StrCat(manifest->files.size()),
                 BytesText(bytes)});
    }
  }
  if (!table.empty()) out << table.Text(0);
  return code;
}

int Verify(const std::vector<std::string>& arguments, std::ostream& out, std::ostream& err) {
  int code = kExitOk;
  for (const std::string& argument : arguments) {
    for (const std::string& path : CheckpointsAt(argument)) {
      const absl::StatusOr<CheckpointReport> report = VerifyCheckpoint(path);
      if (!report.ok()) {
        code = Fail(std::string(report.status().message()),
                    absl::IsNotFound(report.status()) ? kExitJobError : kExitTrainingFault, err);
        continue;
      }
      for (const std::string& defect : report->defects) {
        code = Fail(defect, kExitTrainingFault, err);
      }
      if (!report->defects.empty()) continue;
      out << Wrap(absl::StrCat(path, ": whole: ", GroupedText(report->elements), " elements of ",
                               report->parameters, " parameters in ", report->tensors, " tensors, ",
                               report->files, " files, ", BytesText(report->bytes)),
                  2)
          << "\n";
    }
  }
  return code;
}

}  // namespace

int RunCheckpoint(const std::vector<std::string>& args, std::ostream& out, std::ostream& err) {
  const absl::StatusOr<Flags> flags = ParseFlags(args, {}, {});
  if (!flags.ok()) return Usage(std::string(flags.status().message()), err);
  if (flags->positional.empty()) return Usage("ls or verify?", err);
  const std::string action = flags->positional[0];
  const std::vector<std::string> paths(flags->positional.begin() + 1, flags->positional.end());
  if (action == "export" || action == "import") {
    return Fail(absl::StrCat(action, " is not available in this version"), kExitJobError, err);
  }
  if (action != "ls" && action != "verify") {
    return Usage(absl::StrCat("there is no action `", action, "`"), err);
  }
  if (paths.empty()) return Usage(absl::StrCat(action, " needs a path"), err);
  return action == "ls" ? List(paths, out, err) : Verify(paths, out, err);
}

}  // namespace planc
