#include "planc/restart_points.h"

#include <sys/stat.h>

#include <filesystem>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/checkpoint/checkpoint_directory.h"
#include "runtime/checkpoint/manifest.h"
#include "runtime/data/mapped_file.h"

namespace planc {
namespace {

// Tells a checkpoint from one written at its path later; a manifest keeps this when its folder is
// renamed. Empty when there is none.
std::string IdentityOf(const std::string& checkpoint) {
  struct stat file {};
  if (stat(absl::StrCat(checkpoint, "/", kManifestName).c_str(), &file) != 0) return "";
  return absl::StrCat(file.st_dev, " ", file.st_ino, " ", file.st_mtim.tv_sec, ".",
                      file.st_mtim.tv_nsec);
}

}  // namespace

RestartPoints::RestartPoints(const Plan& plan, const std::string& base)
    : directory_(
          std::filesystem::absolute(PathIn(base, plan.job.checkpoint().directory())).string()),
      any_(plan.job.checkpoint().resume() == "auto") {
  if (any_) return;
  for (const CheckpointEntry& entry : ListCheckpoints(directory_)) {
    before_.insert(IdentityOf(entry.path));
  }
}

RestartPoint RestartPoints::Newest() const {
  RestartPoint point;
  const std::vector<CheckpointEntry> entries = ListCheckpoints(directory_);
  for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
    const std::string identity = IdentityOf(entry->path);
    if (identity.empty() || before_.count(identity) != 0) continue;
    point.identity = identity;
    point.description = absl::StrCat("the checkpoint of step ", entry->step);
    if (!any_) point.arguments.push_back(absl::StrCat("--resume=", entry->path));
    return point;
  }
  return point;
}

}  // namespace planc
