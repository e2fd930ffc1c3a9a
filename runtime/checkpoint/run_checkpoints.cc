#include "runtime/checkpoint/run_checkpoints.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/checkpoint/durable_file.h"
#include "runtime/checkpoint/manifest.h"
#include "schemas/status.h"

namespace planc {
namespace {

namespace fs = std::filesystem;

// What is known of one checkpoint.
enum class Owner { kThis, kThisSuperseded, kOther, kUnknown };

Owner OwnerOf(const absl::StatusOr<CheckpointIdentity>& identity,
              const CheckpointSelection& selection) {
  if (!identity.ok()) return Owner::kUnknown;
  const SavedRun& run = identity->run;
  const bool own = run.id.empty() ? selection.adopts_unidentified : run.id == selection.run_id;
  if (!own) return Owner::kOther;
  return IsOnChain(selection.points, run.branch, identity->step) ? Owner::kThis
                                                                 : Owner::kThisSuperseded;
}

}  // namespace

bool IsOnChain(const std::vector<BranchPoint>& points, int64_t branch, int64_t step) {
  int64_t last = std::numeric_limits<int64_t>::max();  // step of the chain on the branch looked at
  int64_t on = static_cast<int64_t>(points.size());
  while (on > branch && on > 0) {
    const BranchPoint& point = points[static_cast<size_t>(on - 1)];
    last = std::min(last, point.step);
    // A branch goes on from an earlier one; a record that says otherwise leads nowhere.
    on = std::min(point.branch, on - 1);
  }
  return on == branch && step <= last;
}

absl::StatusOr<std::vector<CheckpointEntry>> SelectCheckpoints(
    const std::string& directory, const CheckpointSelection& selection) {
  PLANC_ASSIGN_OR_RETURN(std::vector<CheckpointEntry> entries, FindCheckpoints(directory));
  if (selection.run_id.empty()) return entries;
  std::vector<CheckpointEntry> covered;
  for (CheckpointEntry& entry : entries) {
    const Owner owner = OwnerOf(ReadCheckpointIdentity(entry.path), selection);
    if (owner == Owner::kThis || owner == Owner::kUnknown) covered.push_back(std::move(entry));
  }
  return covered;
}

absl::Status CheckStep(const CheckpointEntry& entry, int64_t manifest_step) {
  if (entry.step == manifest_step) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat(entry.path, ": its manifest is of step ", manifest_step, ", its name is not"));
}

absl::StatusOr<AutoChoice> ChooseForAuto(const std::string& directory,
                                         const CheckpointSelection& own) {
  AutoChoice choice;
  PLANC_ASSIGN_OR_RETURN(const std::vector<CheckpointEntry> entries, FindCheckpoints(directory));
  for (const CheckpointEntry& entry : entries) {
    const absl::StatusOr<CheckpointIdentity> identity = ReadCheckpointIdentity(entry.path);
    const std::string id = identity.ok() ? identity->run.id : "";
    const bool unidentified = identity.ok() && id.empty();
    const Owner owner = OwnerOf(identity, own);
    const bool covered =
        own.run_id.empty() ? id.empty() : owner == Owner::kThis || owner == Owner::kUnknown;
    if (covered) {
      choice.candidates.push_back(entry);
      choice.adopts_unidentified = choice.adopts_unidentified || unidentified;
    }
    if (covered || (owner == Owner::kThisSuperseded && !own.run_id.empty())) continue;
    const std::string other = unidentified ? "without an id" : id;
    const auto known = std::find(choice.others.begin(), choice.others.end(), other);
    if (known == choice.others.end()) choice.others.push_back(other);
  }
  return choice;
}

std::string SupersededFolder(const std::string& directory, const std::string& run_id,
                             size_t count) {
  return absl::StrCat(directory, "/run-", run_id, "/superseded-", count);
}

absl::StatusOr<int64_t> SetSupersededAside(const std::string& directory,
                                           const CheckpointSelection& own,
                                           const FileSystem& files) {
  PLANC_ASSIGN_OR_RETURN(const std::vector<CheckpointEntry> entries, FindCheckpoints(directory));
  const std::string folder = SupersededFolder(directory, own.run_id, own.points.size());
  PLANC_RETURN_IF_ERROR(CreateDirectories(folder, files));
  int64_t moved = 0;
  for (const CheckpointEntry& entry : entries) {
    if (OwnerOf(ReadCheckpointIdentity(entry.path), own) != Owner::kThisSuperseded) continue;
    const std::string name = fs::path(entry.path).filename().string();
    PLANC_RETURN_IF_ERROR(RenamePath(entry.path, FreePath(absl::StrCat(folder, "/", name)), files));
    ++moved;
  }
  PLANC_RETURN_IF_ERROR(SyncDirectory(folder, files));
  PLANC_RETURN_IF_ERROR(SyncDirectory(fs::path(folder).parent_path().string(), files));
  PLANC_RETURN_IF_ERROR(SyncDirectory(directory, files));
  return moved;
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
