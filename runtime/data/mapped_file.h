#ifndef PLANC_RUNTIME_DATA_MAPPED_FILE_H_
#define PLANC_RUNTIME_DATA_MAPPED_FILE_H_

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace planc {

// Opens a regular file for reading and returns its descriptor, which the caller closes. Never
// waits: a pipe, a socket, a folder or a device is refused by name. Errors: InvalidArgument
// "PATH: <reason>" with the fault of the system's refusal (schemas/fault.h).
absl::StatusOr<int> OpenRegularFile(const std::string& path);

// The errno of the refusal that an error of these functions tells of; 0 when the system refused
// nothing, e.g. because it is no regular file.
int ErrnoOf(const absl::Status& status);

// A regular file mapped for reading; unmapped by the destructor. An empty file maps to nothing.
// Using bytes that can no longer be read ends the process (mapping_watch.h).
class MappedFile {
 public:
  // Errors: those of OpenRegularFile, and when it cannot be mapped.
  static absl::StatusOr<MappedFile> Open(const std::string& path);

  MappedFile() = default;
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  const char* data() const { return data_; }
  int64_t size() const { return size_; }

  // Reads `bytes` bytes from `begin` into memory, so that using them cannot end the process with
  // SIGBUS when the disk fails or the file was cut short. Where the kernel (before Linux 5.14)
  // cannot do that, nothing is read yet. REQUIRES: they lie in the file.
  // Errors: DataLoss without the path.
  absl::Status Fetch(const char* begin, int64_t bytes) const;
  // Whether the file, if `path` is still its name, is as long as when it was mapped. The rest of
  // the page in which a shorter one ends reads as zeros. Allocates nothing when it is. Errors:
  // DataLoss with both sizes.
  absl::Status CheckNotCut(const std::string& path) const;
  // Gives back the memory that `bytes` bytes from `begin` take; they are read again when they are
  // used again. REQUIRES: they lie in the file.
  void ReleaseMemory(const char* begin, int64_t bytes) const;

 private:
  // madvise on the pages that hold these bytes; 0 or errno.
  int Advise(const char* begin, int64_t bytes, int advice) const;

  const char* data_ = nullptr;
  int64_t size_ = 0;
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

// `path` itself when absolute, else `directory`/`path`.
std::string PathIn(const std::string& directory, const std::string& path);

}  // namespace planc

#endif  // PLANC_RUNTIME_DATA_MAPPED_FILE_H_
