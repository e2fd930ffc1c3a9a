#ifndef PLANC_RUNTIME_CHECKPOINT_VERIFY_CHECKPOINT_H_
#define PLANC_RUNTIME_CHECKPOINT_VERIFY_CHECKPOINT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace planc {

// What VerifyCheckpoint looked at, and found.
struct CheckpointReport {
  int64_t step = 0;
  int64_t parameters = 0;            // tensors of the model
  int64_t elements = 0;              // of the model
  int64_t tensors = 0;               // saved pieces
  int64_t files = 0;                 // shard files
  int64_t bytes = 0;                 // of the shard files
  std::vector<std::string> defects;  // empty: the checkpoint is whole
};

// Checks every byte of a checkpoint: the manifest, the headers and sizes of all files, all
// checksums, that every value is finite, that the pieces of each parameter's state cover it exactly
// once, and that nothing else lies in its folder. Errors: as ReadManifest.
absl::StatusOr<CheckpointReport> VerifyCheckpoint(const std::string& checkpoint);

}  // namespace planc

#endif  // PLANC_RUNTIME_CHECKPOINT_VERIFY_CHECKPOINT_H_
