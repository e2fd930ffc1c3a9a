#include "runtime/checkpoint/readable.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "schemas/fault.h"

namespace planc {
namespace {

constexpr int64_t kPieceBytes = int64_t{1} << 20;

// Reads a file to its end; the error of the system that ended it sooner, or 0.
int ReadToEnd(int file) {
  std::vector<char> piece(kPieceBytes);
  for (;;) {
    const ssize_t bytes = read(file, piece.data(), piece.size());
    if (bytes == 0) return 0;
    if (bytes < 0 && errno != EINTR) return errno;
  }
}

}  // namespace

bool IsDamage(const absl::Status& status) {
  return absl::IsDataLoss(status) || absl::IsNotFound(status);
}

bool IsUnfit(const absl::Status& status) { return IsDamage(status) || absl::IsOutOfRange(status); }

bool IsAbsence(int error) { return error == ENOENT || error == ENOTDIR; }

absl::Status CannotTell(const std::string& path, int error) {
  const absl::Status status = SystemError(absl::StrCat(path, ": cannot be read"), error);
  return error == EIO ? WithFault(status, Fault::kTraining) : status;
}

absl::StatusOr<bool> IsFileThere(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) == 0) return S_ISREG(info.st_mode);
  if (IsAbsence(errno)) return false;
  return CannotTell(path, errno);
}

absl::StatusOr<MappedFile> OpenPart(const std::string& path) {
  absl::StatusOr<MappedFile> file = MappedFile::Open(path);
  if (file.ok()) return file;
  const int error = ErrnoOf(file.status());
  if (error == 0 || IsAbsence(error)) return absl::DataLossError(file.status().message());
  return CannotTell(path, error);
}

absl::Status FetchFailure(const std::string& path, const absl::Status& fetched) {
  const absl::StatusOr<int> file = OpenRegularFile(path);
  const int error = file.ok() ? ReadToEnd(*file) : ErrnoOf(file.status());
  if (file.ok()) close(*file);
  if (error != 0 && !IsAbsence(error)) return CannotTell(path, error);
  return absl::DataLossError(absl::StrCat(path, ": ", fetched.message()));
}

}  // namespace planc
