#include "runtime/data/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "runtime/data/mapping_watch.h"
#include "schemas/counted.h"
#include "schemas/fault.h"

namespace planc {
namespace {

constexpr char kErrno[] = "planc.errno";

absl::Status FileError(const std::string& path, int error) {
  absl::Status status = absl::InvalidArgumentError(absl::StrCat(path, ": ", std::strerror(error)));
  status.SetPayload(kErrno, absl::Cord(absl::StrCat(error)));
  return WithFault(std::move(status), FaultOfErrno(error));
}

absl::Status NotRegular(const std::string& path, mode_t mode) {
  const char* const kind = S_ISDIR(mode)    ? "a folder"
                           : S_ISFIFO(mode) ? "a pipe"
                           : S_ISSOCK(mode) ? "a socket"
                                            : "a device";
  return WithFault(
      absl::InvalidArgumentError(absl::StrCat(path, ": it is ", kind, ", not a regular file")),
      Fault::kEnvironment);
}

absl::StatusOr<const char*> Map(int file, int64_t size, const std::string& path) {
  void* const data = mmap(nullptr, static_cast<size_t>(size), PROT_READ, MAP_PRIVATE, file, 0);
  if (data == MAP_FAILED) return FileError(path, errno);
  return static_cast<const char*>(data);
}

}  // namespace

int ErrnoOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kErrno);
  return payload.has_value() ? std::atoi(std::string(*payload).c_str()) : 0;
}

absl::StatusOr<int> OpenRegularFile(const std::string& path) {
  // Without O_NONBLOCK, opening a pipe waits until somebody writes to it.
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  struct stat info {};
  // A socket, or a device that is not there.
  if (file < 0 && errno == ENXIO && stat(path.c_str(), &info) == 0) {
    return NotRegular(path, info.st_mode);
  }
  if (file < 0) return FileError(path, errno);
  absl::Status status;
  if (fstat(file, &info) != 0) {
    status = FileError(path, errno);
  } else if (!S_ISREG(info.st_mode)) {
    status = NotRegular(path, info.st_mode);
  }
  if (status.ok()) return file;
  close(file);
  return status;
}

absl::StatusOr<MappedFile> MappedFile::Open(const std::string& path) {
  const absl::StatusOr<int> file = OpenRegularFile(path);
  if (!file.ok()) return file.status();
  struct stat info {};
  absl::StatusOr<const char*> data = nullptr;
  if (fstat(*file, &info) != 0) {
    data = FileError(path, errno);
  } else if (info.st_size > 0) {
    data = Map(*file, info.st_size, path);
  }
  close(*file);  // the mapping stays
  if (!data.ok()) return data.status();
  MappedFile mapped;
  mapped.data_ = *data;
  mapped.size_ = info.st_size;
  mapped.device_ = info.st_dev;
  mapped.inode_ = info.st_ino;
  if (*data != nullptr) WatchMapping(*data, info.st_size, path);
  return mapped;
}

absl::Status MappedFile::CheckNotCut(const std::string& path) const {
  struct stat info {};
  // Another file of that name, or none, leaves the mapped one as it is.
  if (stat(path.c_str(), &info) != 0 || info.st_dev != device_ || info.st_ino != inode_ ||
      info.st_size >= size_) {
    return absl::OkStatus();
  }
  return absl::DataLossError(absl::StrCat(path, ": was cut short while it was in use, from ", size_,
                                          " to ",
                                          Counted(static_cast<int64_t>(info.st_size), "byte")));
}

int MappedFile::Advise(const char* begin, int64_t bytes, int advice) const {
  if (bytes == 0) return 0;
  const int64_t page = sysconf(_SC_PAGESIZE);
  const int64_t first = (begin - data_) / page * page;
  const int64_t end = begin - data_ + bytes;
  const int result =
      madvise(const_cast<char*>(data_) + first, static_cast<size_t>(end - first), advice);
  return result == 0 ? 0 : errno;
}

absl::Status MappedFile::Fetch(const char* begin, int64_t bytes) const {
  const int error = Advise(begin, bytes, MADV_POPULATE_READ);
  if (error == 0 || error == EINVAL) return absl::OkStatus();
  // EFAULT stands for the SIGBUS that using the bytes would be.
  const char* const reason =
      error == EFAULT ? "the disk failed or the file was cut short" : std::strerror(error);
  return absl::DataLossError(absl::StrCat("cannot be read: ", reason));
}

void MappedFile::ReleaseMemory(const char* begin, int64_t bytes) const {
  // Only a hint: the pages are clean, and the system drops them itself when memory is short.
  Advise(begin, bytes, MADV_DONTNEED);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      device_(other.device_),
      inode_(other.inode_) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(device_, other.device_);
  std::swap(inode_, other.inode_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_ == nullptr) return;
  UnwatchMapping(data_);
  munmap(const_cast<char*>(data_), static_cast<size_t>(size_));
}

std::string PathIn(const std::string& directory, const std::string& path) {
  if (directory.empty() || (!path.empty() && path[0] == '/')) return path;
  return absl::StrCat(directory, "/", path);
}

}  // namespace planc
