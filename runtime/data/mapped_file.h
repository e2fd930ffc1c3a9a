#ifndef PLANC_RUNTIME_DATA_MAPPED_FILE_H_
#define PLANC_RUNTIME_DATA_MAPPED_FILE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace planc {

// A regular file mapped for reading; unmapped by the destructor. An empty file maps to nothing.
class MappedFile {
 public:
  // Errors: InvalidArgument "PATH: <reason>" when the file cannot be opened or is not regular.
  static absl::StatusOr<MappedFile> Open(const std::string& path);

  MappedFile() = default;
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  const char* data() const { return data_; }
  int64_t size() const { return size_; }

 private:
  const char* data_ = nullptr;
  int64_t size_ = 0;
};

// `path` itself when absolute, else `directory`/`path`.
std::string PathIn(const std::string& directory, const std::string& path);

}  // namespace planc

#endif  // PLANC_RUNTIME_DATA_MAPPED_FILE_H_
