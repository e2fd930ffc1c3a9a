#include "runtime/metrics/append_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "schemas/fault.h"

namespace planc {
namespace {

absl::Status Refused(const std::string& path, const std::string& action) {
  return SystemError(absl::StrCat(path, ": cannot ", action), errno);
}

// Whether a refusal is for want of room, which may be made.
bool IsFull(int error) { return error == ENOSPC || error == EDQUOT || error == EFBIG; }

}  // namespace

absl::StatusOr<std::unique_ptr<AppendFile>> AppendFile::Open(const std::string& path,
                                                             bool truncate) {
  const int flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | (truncate ? O_TRUNC : 0);
  const int file = open(path.c_str(), flags, 0644);
  if (file < 0) return Refused(path, "open");
  return std::unique_ptr<AppendFile>(new AppendFile(file, path));
}

absl::StatusOr<std::unique_ptr<AppendFile>> AppendFile::Create(const std::string& path) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0644);
  if (file < 0 && errno == EEXIST) return absl::AlreadyExistsError(path);
  if (file < 0) return Refused(path, "create");
  return std::unique_ptr<AppendFile>(new AppendFile(file, path));
}

AppendFile::~AppendFile() { close(file_); }

absl::Status AppendFile::Append(const std::string& record) {
  size_t done = 0;
  while (done < record.size()) {
    const ssize_t written = write(file_, record.data() + done, record.size() - done);
    if (written >= 0) {
      done += static_cast<size_t>(written);
    } else if (errno != EINTR) {
      return Refused(path_, "write");
    }
  }
  return absl::OkStatus();
}

absl::Status AppendFile::AppendOrKeep(const std::string& record, int64_t most_kept) {
  kept_ += record;
  size_t done = 0;
  while (done < kept_.size()) {
    const ssize_t written = write(file_, kept_.data() + done, kept_.size() - done);
    if (written < 0 && errno != EINTR) break;
    done += static_cast<size_t>(std::max<ssize_t>(written, 0));
  }
  const int error = done < kept_.size() ? errno : 0;
  kept_.erase(0, done);
  if (error == 0) return absl::OkStatus();
  errno = error;
  const absl::Status refused = Refused(path_, "write");
  if (!IsFull(error)) return refused;
  if (static_cast<int64_t>(kept_.size()) <= most_kept) return absl::OkStatus();
  return WithFault(absl::ResourceExhaustedError(refused.message()),
                   FaultOf(refused).value_or(Fault::kEnvironment));
}

absl::Status AppendFile::SyncIfRoom() const {
  while (fsync(file_) != 0) {
    if (IsFull(errno) || errno == EINVAL) return absl::OkStatus();
    if (errno != EINTR) return Refused(path_, "sync");
  }
  return absl::OkStatus();
}

absl::Status AppendFile::Sync() const {
  while (fsync(file_) != 0) {
    if (errno != EINTR) return Refused(path_, "sync");
  }
  return absl::OkStatus();
}

absl::Status SyncFolder(const std::string& path) {
  const int folder = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return Refused(path, "open");
  const absl::Status status = fsync(folder) == 0 ? absl::OkStatus() : Refused(path, "sync");
  close(folder);
  return status;
}

absl::Status ReplaceFile(const std::string& path, const std::string& contents) {
  const std::string temporary = absl::StrCat(path, ".tmp");
  {
    absl::StatusOr<std::unique_ptr<AppendFile>> file = AppendFile::Open(temporary, true);
    if (!file.ok()) return file.status();
    absl::Status status = (*file)->Append(contents);
    if (status.ok()) status = (*file)->Sync();
    if (!status.ok()) return status;
  }
  if (std::rename(temporary.c_str(), path.c_str()) != 0) return Refused(path, "replace");
  return absl::OkStatus();
}

}  // namespace planc
