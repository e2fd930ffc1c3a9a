#include "runtime/checkpoint/durable_file.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "schemas/fault.h"
#include "schemas/status.h"

namespace planc {
namespace {

namespace fs = std::filesystem;

// One write call moves at most this much, so that a cancelled save ends soon, and so much is sent
// on its way to the disk at a time, so that the disk is never idle while memory is read.
constexpr int64_t kWriteBytes = int64_t{8} << 20;

// `result` is negative: -errno.
absl::Status Refused(const std::string& path, const std::string& action, int64_t result) {
  return SystemError(absl::StrCat(path, ": cannot ", action), static_cast<int>(-result));
}

}  // namespace

absl::StatusOr<DurableFile> DurableFile::Create(const FileSystem& files, const std::string& path) {
  const int file = files.Create(path);
  if (file < 0) return Refused(path, "create", file);
  return DurableFile(files, file, path);
}

DurableFile::DurableFile(DurableFile&& other) noexcept
    : files_(other.files_), file_(std::exchange(other.file_, -1)), path_(other.path_) {}

DurableFile::~DurableFile() {
  if (file_ >= 0) files_.Close(file_);
}

absl::Status DurableFile::Write(const void* data, int64_t bytes, int64_t offset,
                                const std::string& what) {
  const char* const begin = static_cast<const char*>(data);
  int64_t done = 0;
  while (done < bytes) {
    const int64_t written =
        files_.Write(file_, begin + done, std::min(bytes - done, kWriteBytes), offset + done);
    if (written == -EINTR) continue;
    if (written <= 0) {
      const std::string action = what.empty() ? "write" : absl::StrCat("write ", what);
      return Refused(path_, action, written == 0 ? -EIO : written);
    }
    done += written;
  }
  if (offset + bytes - started_ >= kWriteBytes) {
    files_.StartWriting(file_, started_, offset + bytes - started_);
    started_ = offset + bytes;
  }
  return absl::OkStatus();
}

absl::Status DurableFile::Finish() {
  int result = files_.Sync(file_);
  while (result == -EINTR) result = files_.Sync(file_);
  absl::Status status = result < 0 ? Refused(path_, "sync", result) : absl::OkStatus();
  result = files_.Close(std::exchange(file_, -1));
  // Linux closes the file even when it says EINTR, and the contents are already on the disk.
  if (result < 0 && result != -EINTR) status.Update(Refused(path_, "close", result));
  return status;
}

absl::Status WriteDurably(const std::string& path, const FilePieces& pieces,
                          const FileSystem& files) {
  PLANC_ASSIGN_OR_RETURN(DurableFile file, DurableFile::Create(files, path));
  int64_t offset = 0;
  for (const auto& [data, bytes] : pieces) {
    PLANC_RETURN_IF_ERROR(file.Write(data, bytes, offset, ""));
    offset += bytes;
  }
  return file.Finish();
}

absl::Status SyncDirectory(const std::string& path, const FileSystem& files) {
  const int folder = files.OpenDirectory(path);
  if (folder < 0) return Refused(path, "open", folder);
  int result = files.Sync(folder);
  while (result == -EINTR) result = files.Sync(folder);
  files.Close(folder);
  return result < 0 ? Refused(path, "sync", result) : absl::OkStatus();
}

absl::Status CreateDirectories(const std::string& path, const FileSystem& files) {
  std::error_code error;
  if (path.empty() || fs::is_directory(path, error)) return absl::OkStatus();
  const std::string parent = fs::path(path).parent_path().string();
  PLANC_RETURN_IF_ERROR(CreateDirectories(parent, files));
  const int result = files.MakeDirectory(path);
  if (result < 0 && result != -EEXIST) return Refused(path, "create", result);
  if (result < 0 && !fs::is_directory(path, error)) return Refused(path, "create", result);
  return SyncDirectory(parent.empty() ? "." : parent, files);
}

absl::Status RemoveTree(const std::string& path, const FileSystem& files) {
  std::error_code error;
  const fs::file_status status = fs::symlink_status(path, error);
  if (status.type() == fs::file_type::not_found) return absl::OkStatus();
  if (fs::is_directory(status)) {
    std::vector<std::string> entries;
    fs::directory_iterator at(path, error);
    for (; !error && at != fs::directory_iterator(); at.increment(error)) {
      entries.push_back(at->path().string());
    }
    for (const std::string& entry : entries) PLANC_RETURN_IF_ERROR(RemoveTree(entry, files));
  }
  const int result = files.Remove(path);
  return result < 0 && result != -ENOENT ? Refused(path, "remove", result) : absl::OkStatus();
}

absl::Status RenamePath(const std::string& from, const std::string& to, const FileSystem& files) {
  const int result = files.Rename(from, to);
  return result < 0 ? Refused(from, "rename", result) : absl::OkStatus();
}

}  // namespace planc
