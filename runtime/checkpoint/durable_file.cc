#include "runtime/checkpoint/durable_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace planc {
namespace {

// One write call moves at most this much, below the system's own limit of 2 GiB.
constexpr int64_t kWriteBytes = int64_t{1} << 30;

absl::Status SystemError(const std::string& path, const std::string& action) {
  return absl::InternalError(absl::StrCat(path, ": cannot ", action, ": ", std::strerror(errno)));
}

absl::Status WriteAll(int file, const char* data, int64_t bytes, const std::string& path) {
  while (bytes > 0) {
    const ssize_t written = write(file, data, static_cast<size_t>(std::min(bytes, kWriteBytes)));
    if (written < 0) {
      if (errno == EINTR) continue;
      return SystemError(path, "write");
    }
    data += written;
    bytes -= written;
  }
  return absl::OkStatus();
}

// Syncs and closes; `status` is what went before.
absl::Status Finish(int file, absl::Status status, const std::string& path) {
  if (status.ok() && fsync(file) != 0) status = SystemError(path, "sync");
  if (close(file) != 0 && status.ok()) status = SystemError(path, "close");
  return status;
}

}  // namespace

absl::Status WriteDurably(const std::string& path, const FilePieces& pieces) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file < 0) return SystemError(path, "create");
  absl::Status status;
  for (const auto& [data, bytes] : pieces) {
    if (!status.ok()) break;
    status = WriteAll(file, static_cast<const char*>(data), bytes, path);
  }
  return Finish(file, status, path);
}

absl::Status SyncDirectory(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file < 0) return SystemError(path, "open");
  return Finish(file, absl::OkStatus(), path);
}

}  // namespace planc
