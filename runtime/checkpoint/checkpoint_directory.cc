#include "runtime/checkpoint/checkpoint_directory.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/checkpoint/durable_file.h"
#include "runtime/checkpoint/manifest.h"
#include "schemas/status.h"

namespace planc {
namespace {

namespace fs = std::filesystem;

constexpr char kPrefix[] = "step-";
constexpr char kUnfinished[] = ".tmp";  // being written
constexpr char kReplaced[] = ".old";    // about to be removed

absl::Status PathError(const fs::path& path, const std::string& action,
                       const std::error_code& error) {
  return absl::InternalError(
      absl::StrCat(path.string(), ": cannot ", action, ": ", error.message()));
}

absl::Status RemoveTree(const fs::path& path) {
  std::error_code error;
  fs::remove_all(path, error);
  if (error) return PathError(path, "remove", error);
  return absl::OkStatus();
}

absl::Status Rename(const fs::path& from, const fs::path& to) {
  std::error_code error;
  fs::rename(from, to, error);
  if (error) return PathError(from, "rename", error);
  return absl::OkStatus();
}

// Whether `name` is a checkpoint's name with `suffix` behind it.
bool IsLeftover(const std::string& name, const std::string& suffix) {
  return name.size() > suffix.size() &&
         name.compare(name.size() - suffix.size(), suffix.size(), suffix) == 0 &&
         StepOfName(name.substr(0, name.size() - suffix.size())).has_value();
}

std::vector<fs::path> EntriesOf(const std::string& directory) {
  std::vector<fs::path> paths;
  std::error_code error;
  fs::directory_iterator at(directory, error);
  for (; !error && at != fs::directory_iterator(); at.increment(error)) {
    paths.push_back(at->path());
  }
  return paths;
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

std::vector<CheckpointEntry> ListCheckpoints(const std::string& directory) {
  std::vector<CheckpointEntry> entries;
  for (const fs::path& path : EntriesOf(directory)) {
    const std::optional<int64_t> step = StepOfName(path.filename().string());
    std::error_code error;
    if (step.has_value() && fs::is_regular_file(path / kManifestName, error)) {
      entries.push_back({*step, path.string()});
    }
  }
  std::sort(entries.begin(), entries.end(),
            [](const CheckpointEntry& a, const CheckpointEntry& b) { return a.step < b.step; });
  return entries;
}

std::string UnfinishedPath(const std::string& directory, int64_t step) {
  return absl::StrCat(directory, "/", CheckpointName(step), kUnfinished);
}

absl::StatusOr<std::string> BeginCheckpoint(const std::string& directory, int64_t step) {
  const fs::path path = UnfinishedPath(directory, step);
  PLANC_RETURN_IF_ERROR(RemoveTree(path));
  std::error_code error;
  fs::create_directories(path, error);
  if (error) return PathError(path, "create", error);
  return path.string();
}

absl::Status FinishCheckpoint(const std::string& directory, int64_t step) {
  const fs::path path = fs::path(directory) / CheckpointName(step);
  const fs::path replaced = path.string() + kReplaced;
  PLANC_RETURN_IF_ERROR(RemoveTree(replaced));
  std::error_code error;
  if (fs::exists(path, error)) PLANC_RETURN_IF_ERROR(Rename(path, replaced));
  PLANC_RETURN_IF_ERROR(Rename(UnfinishedPath(directory, step), path));
  PLANC_RETURN_IF_ERROR(SyncDirectory(directory));
  return RemoveTree(replaced);
}

absl::Status PruneCheckpoints(const std::string& directory, int64_t keep) {
  const std::vector<CheckpointEntry> entries = ListCheckpoints(directory);
  const int64_t count = static_cast<int64_t>(entries.size());
  for (int64_t i = 0; i < count - keep; ++i) {
    // Without its manifest it is no checkpoint any more, even if the rest is removed halfway.
    PLANC_RETURN_IF_ERROR(RemoveTree(fs::path(entries[i].path) / kManifestName));
    PLANC_RETURN_IF_ERROR(RemoveTree(entries[i].path));
  }
  for (const fs::path& path : EntriesOf(directory)) {
    const std::string name = path.filename().string();
    if (IsLeftover(name, kUnfinished) || IsLeftover(name, kReplaced)) {
      PLANC_RETURN_IF_ERROR(RemoveTree(path));
    }
  }
  return absl::OkStatus();
}

}  // namespace planc
