#include "runtime/checkpoint/checkpoint_directory.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/checkpoint/durable_file.h"
#include "runtime/checkpoint/manifest.h"
#include "runtime/checkpoint/readable.h"
#include "runtime/checkpoint/run_checkpoints.h"
#include "schemas/status.h"

namespace planc {
namespace {

namespace fs = std::filesystem;

constexpr char kPrefix[] = "step-";
constexpr char kUnfinished[] = ".tmp";  // being written
constexpr char kReplaced[] = ".old";    // about to be removed

// The step of a checkpoint's name with `suffix` behind it.
std::optional<int64_t> StepOfLeftover(const std::string& name, const std::string& suffix) {
  if (name.size() <= suffix.size()) return std::nullopt;
  const size_t stem = name.size() - suffix.size();
  return name.compare(stem, suffix.size(), suffix) == 0 ? StepOfName(name.substr(0, stem))
                                                        : std::nullopt;
}

absl::StatusOr<bool> IsComplete(const fs::path& path) {
  return IsFileThere((path / kManifestName).string());
}

// Nothing when there is no such folder.
absl::StatusOr<std::vector<fs::path>> EntriesOf(const std::string& directory) {
  std::vector<fs::path> paths;
  std::error_code error;
  fs::directory_iterator at(directory, error);
  for (; !error && at != fs::directory_iterator(); at.increment(error)) {
    paths.push_back(at->path());
  }
  if (error && !IsAbsence(error.value())) return CannotTell(directory, error.value());
  return paths;
}

std::string FinishedPath(const std::string& directory, int64_t step) {
  return absl::StrCat(directory, "/", CheckpointName(step));
}

// A folder loses its manifest first: without it it is no checkpoint any more, even if the rest is
// removed halfway.
absl::Status RemoveCheckpoint(const std::string& path, const FileSystem& files) {
  PLANC_RETURN_IF_ERROR(RemoveTree(absl::StrCat(path, "/", kManifestName), files));
  return RemoveTree(path, files);
}

// Whether a checkpoint of this run may be removed or replaced: with an id, only its own.
bool IsOwn(const std::string& path, int64_t step, const std::string& run_id) {
  if (run_id.empty()) return true;
  const absl::StatusOr<CheckpointIdentity> identity = ReadCheckpointIdentity(path);
  return identity.ok() && identity->run.id == run_id && identity->step == step;
}

// Undoes what a save that replaced a checkpoint of its step left when it was interrupted.
absl::Status RepairReplaced(const std::string& directory, const FileSystem& files,
                            const std::string& run_id) {
  PLANC_ASSIGN_OR_RETURN(const std::vector<fs::path> entries, EntriesOf(directory));
  for (const fs::path& path : entries) {
    const std::optional<int64_t> step = StepOfLeftover(path.filename().string(), kReplaced);
    if (!step.has_value()) continue;
    const std::string finished = FinishedPath(directory, *step);
    PLANC_ASSIGN_OR_RETURN(const bool complete, IsComplete(path));
    PLANC_ASSIGN_OR_RETURN(const bool replaced, IsComplete(finished));
    if (complete && !replaced) {
      PLANC_RETURN_IF_ERROR(RemoveTree(finished, files));
      PLANC_RETURN_IF_ERROR(RenamePath(path.string(), finished, files));
      PLANC_RETURN_IF_ERROR(SyncDirectory(directory, files));
    } else if (complete && !IsOwn(path.string(), *step, run_id)) {
      PLANC_RETURN_IF_ERROR(SetCheckpointAside(directory, path.string(), files));
    } else {
      PLANC_RETURN_IF_ERROR(RemoveCheckpoint(path.string(), files));
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::string CheckpointName(int64_t step) { return absl::StrFormat("%s%08d", kPrefix, step); }

std::optional<int64_t> StepOfName(const std::string& name) {
  const std::string prefix = kPrefix;
  if (name.compare(0, prefix.size(), prefix) != 0) return std::nullopt;
  int64_t step = 0;
  const char* const end = name.data() + name.size();
  const auto parsed = std::from_chars(name.data() + prefix.size(), end, step);
  if (parsed.ec != std::errc() || parsed.ptr != end) return std::nullopt;
  if (name != CheckpointName(step)) return std::nullopt;
  return step;
}

absl::StatusOr<std::vector<CheckpointEntry>> FindCheckpoints(const std::string& directory) {
  std::vector<CheckpointEntry> entries;
  PLANC_ASSIGN_OR_RETURN(const std::vector<fs::path> paths, EntriesOf(directory));
  for (const fs::path& path : paths) {
    const std::string name = path.filename().string();
    const std::optional<int64_t> step = StepOfName(name);
    const std::optional<int64_t> replaced = StepOfLeftover(name, kReplaced);
    if (!step.has_value() && !replaced.has_value()) continue;
    PLANC_ASSIGN_OR_RETURN(bool complete, IsComplete(path));
    if (replaced.has_value()) {
      PLANC_ASSIGN_OR_RETURN(const bool done, IsComplete(FinishedPath(directory, *replaced)));
      complete = complete && !done;
    }
    if (complete) entries.push_back({step.has_value() ? *step : *replaced, path.string()});
  }
  std::sort(entries.begin(), entries.end(),
            [](const CheckpointEntry& a, const CheckpointEntry& b) { return a.step < b.step; });
  return entries;
}

std::vector<CheckpointEntry> ListCheckpoints(const std::string& directory) {
  return FindCheckpoints(directory).value_or(std::vector<CheckpointEntry>());
}

std::string UnfinishedPath(const std::string& directory, int64_t step) {
  return absl::StrCat(FinishedPath(directory, step), kUnfinished);
}

absl::StatusOr<std::string> BeginCheckpoint(const std::string& directory, int64_t step,
                                            const FileSystem& files, const std::string& run_id) {
  PLANC_RETURN_IF_ERROR(RepairReplaced(directory, files, run_id));
  const std::string path = UnfinishedPath(directory, step);
  PLANC_RETURN_IF_ERROR(RemoveTree(path, files));
  PLANC_RETURN_IF_ERROR(CreateDirectories(path, files));
  return path;
}

absl::Status FinishCheckpoint(const std::string& directory, int64_t step, const FileSystem& files,
                              const std::string& run_id) {
  const std::string path = FinishedPath(directory, step);
  std::error_code error;
  PLANC_ASSIGN_OR_RETURN(const bool complete, IsComplete(path));
  if (complete && !IsOwn(path, step, run_id)) {
    PLANC_RETURN_IF_ERROR(SetCheckpointAside(directory, path, files));
  } else if (fs::exists(path, error)) {
    PLANC_RETURN_IF_ERROR(RenamePath(path, absl::StrCat(path, kReplaced), files));
  }
  PLANC_RETURN_IF_ERROR(RenamePath(UnfinishedPath(directory, step), path, files));
  return SyncDirectory(directory, files);
}

absl::Status PruneCheckpoints(const std::string& directory, int64_t keep, int64_t last_step,
                              const FileSystem& files, const std::string& run_id) {
  PLANC_RETURN_IF_ERROR(RepairReplaced(directory, files, run_id));
  PLANC_ASSIGN_OR_RETURN(std::vector<CheckpointEntry> entries, FindCheckpoints(directory));
  while (!entries.empty() && entries.back().step > last_step) entries.pop_back();
  entries.erase(std::remove_if(entries.begin(), entries.end(),
                               [&](const CheckpointEntry& entry) {
                                 return !IsOwn(entry.path, entry.step, run_id);
                               }),
                entries.end());
  const int64_t count = static_cast<int64_t>(entries.size());
  for (int64_t i = 0; i < count - keep; ++i) {
    PLANC_RETURN_IF_ERROR(RemoveCheckpoint(entries[i].path, files));
  }
  PLANC_ASSIGN_OR_RETURN(const std::vector<fs::path> paths, EntriesOf(directory));
  for (const fs::path& path : paths) {
    if (StepOfLeftover(path.filename().string(), kUnfinished).has_value()) {
      PLANC_RETURN_IF_ERROR(RemoveTree(path.string(), files));
    }
  }
  return absl::OkStatus();
}

}  // namespace planc
