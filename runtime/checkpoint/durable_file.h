#ifndef PLANC_RUNTIME_CHECKPOINT_DURABLE_FILE_H_
#define PLANC_RUNTIME_CHECKPOINT_DURABLE_FILE_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/checkpoint/file_system.h"

namespace planc {

// Pieces of memory that make up a file.
using FilePieces = std::vector<std::pair<const void*, int64_t>>;  // address, bytes

// A file being written. All errors are Internal and name the path and the system's reason.
class DurableFile {
 public:
  // Creates or empties the file. `files` must outlive this object.
  static absl::StatusOr<DurableFile> Create(const FileSystem& files, const std::string& path);
  DurableFile(DurableFile&& other) noexcept;
  DurableFile& operator=(DurableFile&&) = delete;
  // Closes a file that Finish did not.
  ~DurableFile();

  // Writes at `offset`. `what` names the bytes in errors; may be empty.
  absl::Status Write(const void* data, int64_t bytes, int64_t offset, const std::string& what);
  // Waits until the contents are on the disk, and closes. The entry in the file's folder needs
  // SyncDirectory.
  absl::Status Finish();

 private:
  DurableFile(const FileSystem& files, int file, std::string path)
      : files_(files), file_(file), path_(std::move(path)) {}

  const FileSystem& files_;
  int file_;  // -1: closed
  const std::string path_;
  int64_t started_ = 0;  // bytes from the start of the file that are on their way to the disk
};

// Creates or replaces `path` and waits until its contents are on the disk. The entry in its folder
// needs SyncDirectory. Errors: Internal naming the path and the system's reason.
absl::Status WriteDurably(const std::string& path, const FilePieces& pieces,
                          const FileSystem& files = HostFileSystem());
// Waits until the entries of a folder are on the disk. Errors: as above.
absl::Status SyncDirectory(const std::string& path, const FileSystem& files = HostFileSystem());
// Makes a folder and those it lies in, where they do not exist, and waits until the entries of the
// new ones are on the disk. Errors: as above.
absl::Status CreateDirectories(const std::string& path, const FileSystem& files = HostFileSystem());
// Removes a file or a folder with all that is in it, if it is there. Errors: as above.
absl::Status RemoveTree(const std::string& path, const FileSystem& files = HostFileSystem());
absl::Status RenamePath(const std::string& from, const std::string& to,
                        const FileSystem& files = HostFileSystem());

}  // namespace planc

#endif  // PLANC_RUNTIME_CHECKPOINT_DURABLE_FILE_H_
