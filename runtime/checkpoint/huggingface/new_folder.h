#ifndef PLANC_RUNTIME_CHECKPOINT_HUGGINGFACE_NEW_FOLDER_H_
#define PLANC_RUNTIME_CHECKPOINT_HUGGINGFACE_NEW_FOLDER_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/checkpoint/file_system.h"

namespace planc {

// A folder that appears complete or not at all: it is written as `path`.tmp and renamed. Errors of
// the system: Internal naming the path and the reason.
class NewFolder {
 public:
  // Makes `path`.tmp. `files` must outlive this object. Errors: InvalidArgument when `path` exists
  // and is not an empty folder, or when `path`.tmp exists: it was left by another export or import
  // that was interrupted, or is still being written.
  static absl::StatusOr<NewFolder> Begin(const FileSystem& files, const std::string& path);
  NewFolder(NewFolder&& other) noexcept;
  NewFolder& operator=(NewFolder&&) = delete;
  // Removes what was written, unless it was committed.
  ~NewFolder();

  // Where to write.
  const std::string& unfinished() const { return unfinished_; }
  // Writes a small file.
  absl::Status Write(const std::string& name, const std::string& text) const;
  // Waits until the folder is on the disk and gives it its name.
  absl::Status Commit();

 private:
  NewFolder(const FileSystem& files, std::string path);

  const FileSystem& files_;
  const std::string path_;
  const std::string unfinished_;
  bool open_ = true;
};

}  // namespace planc

#endif  // PLANC_RUNTIME_CHECKPOINT_HUGGINGFACE_NEW_FOLDER_H_
