#include "runtime/checkpoint/huggingface/new_folder.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/checkpoint/durable_file.h"
#include "schemas/status.h"

namespace planc {
namespace {

namespace fs = std::filesystem;

// Without slashes at the end, which would put "DIR/.tmp" inside.
std::string WithoutSlashes(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

}  // namespace

NewFolder::NewFolder(const FileSystem& files, std::string path)
    : files_(files), path_(std::move(path)), unfinished_(path_ + ".tmp") {}

NewFolder::NewFolder(NewFolder&& other) noexcept
    : files_(other.files_),
      path_(other.path_),
      unfinished_(other.unfinished_),
      open_(std::exchange(other.open_, false)) {}

NewFolder::~NewFolder() {
  if (open_) RemoveTree(unfinished_, files_).IgnoreError();
}

absl::StatusOr<NewFolder> NewFolder::Begin(const FileSystem& files, const std::string& path) {
  const std::string target = WithoutSlashes(path);
  std::error_code error;
  if (fs::exists(target, error) &&
      !(fs::is_directory(target, error) && fs::is_empty(target, error))) {
    return absl::InvalidArgumentError(absl::StrCat(
        target,
        ": exists and is not an empty folder; nothing is overwritten: choose another name"));
  }
  const std::string unfinished = target + ".tmp";
  if (fs::exists(unfinished, error)) {
    return absl::InvalidArgumentError(absl::StrCat(
        unfinished, ": is being written, or was left when that was interrupted; remove it first"));
  }
  PLANC_RETURN_IF_ERROR(CreateDirectories(unfinished, files));
  return NewFolder(files, target);
}

absl::Status NewFolder::Write(const std::string& name, const std::string& text) const {
  const FilePieces pieces = {{text.data(), static_cast<int64_t>(text.size())}};
  return WriteDurably(absl::StrCat(unfinished_, "/", name), pieces, files_);
}

absl::Status NewFolder::Commit() {
  PLANC_RETURN_IF_ERROR(SyncDirectory(unfinished_, files_));
  PLANC_RETURN_IF_ERROR(RenamePath(unfinished_, path_, files_));
  open_ = false;
  const std::string parent = fs::path(path_).parent_path().string();
  return SyncDirectory(parent.empty() ? "." : parent, files_);
}

}  // namespace planc
