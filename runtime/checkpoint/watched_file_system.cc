#include "runtime/checkpoint/watched_file_system.h"

#include "absl/strings/str_cat.h"

namespace planc {

int WatchedFileSystem::Remember(int file, const std::string& path) const {
  if (file < 0) return file;
  const std::lock_guard<std::mutex> lock(mutex_);
  paths_[file] = path;
  return file;
}

std::string WatchedFileSystem::PathOf(int file) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = paths_.find(file);
  return found == paths_.end() ? "a file" : found->second;
}

int WatchedFileSystem::Create(const std::string& path) const {
  const StorageWatch::Call call(watch_, use_, absl::StrCat("open of ", path));
  return Remember(files_.Create(path), path);
}

int WatchedFileSystem::OpenDirectory(const std::string& path) const {
  const StorageWatch::Call call(watch_, use_, absl::StrCat("open of ", path));
  return Remember(files_.OpenDirectory(path), path);
}

int64_t WatchedFileSystem::Write(int file, const void* data, int64_t bytes, int64_t offset) const {
  const StorageWatch::Call call(watch_, use_, absl::StrCat("write to ", PathOf(file)));
  return files_.Write(file, data, bytes, offset);
}

void WatchedFileSystem::StartWriting(int file, int64_t offset, int64_t bytes) const {
  const StorageWatch::Call call(watch_, use_, absl::StrCat("write to ", PathOf(file)));
  files_.StartWriting(file, offset, bytes);
}

int WatchedFileSystem::Sync(int file) const {
  const StorageWatch::Call call(watch_, use_, absl::StrCat("fsync of ", PathOf(file)));
  return files_.Sync(file);
}

int WatchedFileSystem::Close(int file) const {
  const StorageWatch::Call call(watch_, use_, absl::StrCat("close of ", PathOf(file)));
  return files_.Close(file);
}

int WatchedFileSystem::MakeDirectory(const std::string& path) const {
  const StorageWatch::Call call(watch_, use_, absl::StrCat("mkdir of ", path));
  return files_.MakeDirectory(path);
}

int WatchedFileSystem::Rename(const std::string& from, const std::string& to) const {
  const StorageWatch::Call call(watch_, use_, absl::StrCat("rename of ", from));
  return files_.Rename(from, to);
}

int WatchedFileSystem::Remove(const std::string& path) const {
  const StorageWatch::Call call(watch_, use_, absl::StrCat("removal of ", path));
  return files_.Remove(path);
}

}  // namespace planc
