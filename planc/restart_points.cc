#include "planc/restart_points.h"

#include <sys/stat.h>

#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "runtime/checkpoint/checkpoint_directory.h"
#include "runtime/checkpoint/manifest.h"

namespace planc {
namespace {

// Tells a checkpoint from one written at its path later; a manifest keeps this when its folder is
// renamed.
std::string IdentityOf(const std::string& checkpoint) {
  struct stat file {};
  if (stat(absl::StrCat(checkpoint, "/", kManifestName).c_str(), &file) != 0) return "";
  return absl::StrCat(file.st_dev, " ", file.st_ino, " ", file.st_mtim.tv_sec, ".",
                      file.st_mtim.tv_nsec);
}

}  // namespace

RestartPoint NewestRestartPoint(const OwnedRun& run) {
  RestartPoint point;
  const absl::StatusOr<bool> written = run.HasWritten();
  // Where the checkpoints cannot be seen, the ranks say so: they do not begin again.
  if (!written.ok() || *written) point.arguments.emplace_back("--resume=auto");
  const std::string newest = written.ok() && *written ? run.NewestCheckpoint() : "";
  const std::string identity = newest.empty() ? "" : IdentityOf(newest);
  if (identity.empty()) return point;
  const std::string name = std::filesystem::path(newest).stem().string();  // without .old
  point.identity = identity;
  point.description = absl::StrCat("the checkpoint of step ", StepOfName(name).value_or(0));
  return point;
}

}  // namespace planc
