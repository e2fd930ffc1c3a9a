#include "runtime/checkpoint/run_checkpoints.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "runtime/checkpoint/durable_file.h"
#include "runtime/checkpoint/manifest.h"
#include "schemas/status.h"

namespace planc {
namespace {

namespace fs = std::filesystem;

bool Covers(const CheckpointSelection& selection, const std::string& path) {
  if (selection.run_id.empty()) return true;
  const absl::StatusOr<CheckpointIdentity> identity = ReadCheckpointIdentity(path);
  if (!identity.ok()) return true;
  if (identity->run.id.empty()) return selection.adopts_unidentified;
  return identity->run.id == selection.run_id;
}

}  // namespace

std::vector<CheckpointEntry> SelectCheckpoints(const std::string& directory,
                                               const CheckpointSelection& selection) {
  std::vector<CheckpointEntry> entries = ListCheckpoints(directory);
  entries.erase(
      std::remove_if(entries.begin(), entries.end(),
                     [&](const CheckpointEntry& entry) { return !Covers(selection, entry.path); }),
      entries.end());
  return entries;
}

absl::Status CheckStep(const CheckpointEntry& entry, int64_t manifest_step) {
  if (entry.step == manifest_step) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat(entry.path, ": its manifest is of step ", manifest_step, ", its name is not"));
}

AutoChoice ChooseForAuto(const std::string& directory, const CheckpointSelection& own) {
  AutoChoice choice;
  for (const CheckpointEntry& entry : ListCheckpoints(directory)) {
    const absl::StatusOr<CheckpointIdentity> identity = ReadCheckpointIdentity(entry.path);
    const std::string id = identity.ok() ? identity->run.id : "";
    const bool unidentified = identity.ok() && id.empty();
    const bool covered = own.run_id.empty() ? id.empty()
                         : unidentified     ? own.adopts_unidentified
                                            : !identity.ok() || id == own.run_id;
    if (covered) {
      choice.candidates.push_back(entry);
      choice.adopts_unidentified = choice.adopts_unidentified || unidentified;
      continue;
    }
    const std::string other = unidentified ? "without an id" : id;
    const auto known = std::find(choice.others.begin(), choice.others.end(), other);
    if (known == choice.others.end()) choice.others.push_back(other);
  }
  return choice;
}

std::string FreePath(const std::string& path) {
  std::error_code error;
  if (fs::symlink_status(path, error).type() == fs::file_type::not_found) return path;
  for (int number = 1;; ++number) {
    const std::string numbered = absl::StrCat(path, ".", number);
    if (fs::symlink_status(numbered, error).type() == fs::file_type::not_found) return numbered;
  }
}

absl::Status SetCheckpointAside(const std::string& directory, const std::string& path,
                                const FileSystem& files) {
  const absl::StatusOr<CheckpointIdentity> identity = ReadCheckpointIdentity(path);
  const std::string id = identity.ok() && !identity->run.id.empty() ? identity->run.id : "unknown";
  const std::string folder = absl::StrCat(directory, "/run-", id);
  PLANC_RETURN_IF_ERROR(CreateDirectories(folder, files));
  const std::string name = fs::path(path).filename().string();
  PLANC_RETURN_IF_ERROR(RenamePath(path, FreePath(absl::StrCat(folder, "/", name)), files));
  PLANC_RETURN_IF_ERROR(SyncDirectory(folder, files));
  return SyncDirectory(directory, files);
}

}  // namespace planc
