#include "runtime/checkpoint/newest_checkpoint.h"

#include <vector>

#include "absl/status/statusor.h"
#include "runtime/checkpoint/manifest.h"

namespace planc {

std::optional<CheckpointEntry> NewestCheckpoint(const std::string& directory,
                                                const CheckpointSelection& selection) {
  const absl::StatusOr<std::vector<CheckpointEntry>> entries =
      SelectCheckpoints(directory, selection);
  if (!entries.ok()) return std::nullopt;
  for (auto entry = entries->rbegin(); entry != entries->rend(); ++entry) {
    const absl::StatusOr<CheckpointIdentity> identity = ReadCheckpointIdentity(entry->path);
    if (identity.ok() && identity->step == entry->step) return *entry;
  }
  return std::nullopt;
}

}  // namespace planc
