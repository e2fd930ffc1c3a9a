#ifndef PLANC_RUNTIME_METRICS_APPEND_FILE_H_
#define PLANC_RUNTIME_METRICS_APPEND_FILE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace planc {

// A file that grows by whole records, each handed to the operating system at once, so that a reader
// sees it immediately and a stopped process loses nothing.
class AppendFile {
 public:
  // Opens or creates `path`; `truncate` empties it first. Errors: Internal naming the path.
  static absl::StatusOr<std::unique_ptr<AppendFile>> Open(const std::string& path, bool truncate);
  // Creates `path`. Errors: AlreadyExists; Internal naming the path.
  static absl::StatusOr<std::unique_ptr<AppendFile>> Create(const std::string& path);
  ~AppendFile();
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;

  absl::Status Append(const std::string& record);
  // Appends a record, or keeps it in memory while the disk has no room and writes it before the
  // next one. Errors: ResourceExhausted, with the fault of a full disk, when more than `most_kept`
  // bytes are kept, which then stay kept; else as Append.
  absl::Status AppendOrKeep(const std::string& record, int64_t most_kept = kMostKeptBytes);
  // Waits until all records so far, except those that are kept, are on the disk. Thread-safe.
  absl::Status Sync() const;
  // The same, where a disk without room is no error, as its records are then lost if the machine
  // fails, nor a special file, which has nothing to wait for.
  absl::Status SyncIfRoom() const;

  static constexpr int64_t kMostKeptBytes = int64_t{512} << 10;

 private:
  AppendFile(int file, std::string path) : file_(file), path_(std::move(path)) {}

  const int file_;
  const std::string path_;
  std::string kept_;  // what is still to be written, perhaps from the middle of a record
};

// Writes a whole file beside `path` and renames it, so that a reader sees the old contents or the
// new ones, also after the machine was cut off. Errors: Internal naming the path.
absl::Status ReplaceFile(const std::string& path, const std::string& contents);
// Waits until the entries of a folder are on the disk. Errors: Internal naming the path.
absl::Status SyncFolder(const std::string& path);

}  // namespace planc

#endif  // PLANC_RUNTIME_METRICS_APPEND_FILE_H_
