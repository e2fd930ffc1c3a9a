#ifndef PLANC_RUNTIME_CHECKPOINT_WATCHED_FILE_SYSTEM_H_
#define PLANC_RUNTIME_CHECKPOINT_WATCHED_FILE_SYSTEM_H_

#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "runtime/checkpoint/file_system.h"
#include "runtime/process_group/storage_watch.h"

namespace planc {

// Another file system, whose calls a StorageWatch knows of while they last.
class WatchedFileSystem : public FileSystem {
 public:
  // `files` and `watch`, which may be null, must outlive this object.
  WatchedFileSystem(const FileSystem& files, StorageWatch* watch, StorageUse use)
      : files_(files), watch_(watch), use_(use) {}

  int Create(const std::string& path) const override;
  int OpenDirectory(const std::string& path) const override;
  int64_t Write(int file, const void* data, int64_t bytes, int64_t offset) const override;
  void StartWriting(int file, int64_t offset, int64_t bytes) const override;
  int Sync(int file) const override;
  int Close(int file) const override;
  int MakeDirectory(const std::string& path) const override;
  int Rename(const std::string& from, const std::string& to) const override;
  int Remove(const std::string& path) const override;

 private:
  int Remember(int file, const std::string& path) const;
  std::string PathOf(int file) const;

  const FileSystem& files_;
  StorageWatch* const watch_;
  const StorageUse use_;
  mutable std::mutex mutex_;
  mutable std::map<int, std::string> paths_;  // of open files; guarded by mutex_
};

}  // namespace planc

#endif  // PLANC_RUNTIME_CHECKPOINT_WATCHED_FILE_SYSTEM_H_
