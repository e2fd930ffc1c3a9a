#ifndef PLANC_COMPILER_SPEC_FILE_READER_H_
#define PLANC_COMPILER_SPEC_FILE_READER_H_

#include <functional>
#include <string>

#include "absl/status/statusor.h"

namespace planc {

// Returns the whole text of a file. Tests and fuzzers pass one that reads from memory.
using FileReader = std::function<absl::StatusOr<std::string>(const std::string& path)>;

// Reads from the file system. Only regular files are read, and no more than a job file may hold
// plus one byte, so that the caller sees that the file is too large.
absl::StatusOr<std::string> ReadRegularFile(const std::string& path);

}  // namespace planc

#endif  // PLANC_COMPILER_SPEC_FILE_READER_H_
