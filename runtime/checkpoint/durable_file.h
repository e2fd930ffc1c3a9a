#ifndef PLANC_RUNTIME_CHECKPOINT_DURABLE_FILE_H_
#define PLANC_RUNTIME_CHECKPOINT_DURABLE_FILE_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"

namespace planc {

// Pieces of memory that make up a file.
using FilePieces = std::vector<std::pair<const void*, int64_t>>;  // address, bytes

// Creates or replaces `path` and waits until its contents are on the disk. The entry in its folder
// needs SyncDirectory. Errors: Internal naming the path and the system's reason.
absl::Status WriteDurably(const std::string& path, const FilePieces& pieces);
// Waits until the entries of a folder are on the disk.
absl::Status SyncDirectory(const std::string& path);

}  // namespace planc

#endif  // PLANC_RUNTIME_CHECKPOINT_DURABLE_FILE_H_
