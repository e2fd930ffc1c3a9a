#include "runtime/checkpoint/file_system.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <limits>

namespace planc {
namespace {

template <typename Result>
Result OrError(Result result) {
  return result < 0 ? -errno : result;
}

}  // namespace

int HostFileSystem::Create(const std::string& path) const {
  return OrError(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
}

int HostFileSystem::OpenDirectory(const std::string& path) const {
  return OrError(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

int64_t HostFileSystem::Write(int file, const void* data, int64_t bytes, int64_t offset) const {
  return OrError<int64_t>(pwrite(file, data, static_cast<size_t>(bytes), offset));
}

void HostFileSystem::StartWriting(int file, int64_t offset, int64_t bytes) const {
  sync_file_range(file, offset, bytes, SYNC_FILE_RANGE_WRITE);
}

int HostFileSystem::Sync(int file) const { return OrError(fsync(file)); }

int HostFileSystem::Close(int file) const { return OrError(close(file)); }

int HostFileSystem::MakeDirectory(const std::string& path) const {
  return OrError(mkdir(path.c_str(), 0755));
}

int HostFileSystem::Rename(const std::string& from, const std::string& to) const {
  return OrError(std::rename(from.c_str(), to.c_str()));
}

int HostFileSystem::Remove(const std::string& path) const {
  return OrError(std::remove(path.c_str()));
}

int64_t FileSystem::FreeBytes(const std::string& path) const {
  struct statvfs system {};
  if (statvfs(path.c_str(), &system) != 0) return -errno;
  if (system.f_blocks == 0) return -ENOSYS;
  uint64_t bytes = 0;
  const bool large = __builtin_mul_overflow(static_cast<uint64_t>(system.f_bavail),
                                            static_cast<uint64_t>(system.f_frsize), &bytes);
  constexpr uint64_t kMost = std::numeric_limits<int64_t>::max();
  return static_cast<int64_t>(large ? kMost : std::min(bytes, kMost));
}

int CancellableFileSystem::Create(const std::string& path) const {
  return cancelled_ ? -ECANCELED : files_.Create(path);
}

int CancellableFileSystem::OpenDirectory(const std::string& path) const {
  return cancelled_ ? -ECANCELED : files_.OpenDirectory(path);
}

int64_t CancellableFileSystem::Write(int file, const void* data, int64_t bytes,
                                     int64_t offset) const {
  return cancelled_ ? -ECANCELED : files_.Write(file, data, bytes, offset);
}

void CancellableFileSystem::StartWriting(int file, int64_t offset, int64_t bytes) const {
  if (!cancelled_) files_.StartWriting(file, offset, bytes);
}

int CancellableFileSystem::Sync(int file) const {
  return cancelled_ ? -ECANCELED : files_.Sync(file);
}

int CancellableFileSystem::MakeDirectory(const std::string& path) const {
  return cancelled_ ? -ECANCELED : files_.MakeDirectory(path);
}

int CancellableFileSystem::Rename(const std::string& from, const std::string& to) const {
  return cancelled_ ? -ECANCELED : files_.Rename(from, to);
}

int CancellableFileSystem::Remove(const std::string& path) const {
  return cancelled_ ? -ECANCELED : files_.Remove(path);
}

}  // namespace planc
