#ifndef PLANC_RUNTIME_CHECKPOINT_CHECKPOINT_DIRECTORY_H_
#define PLANC_RUNTIME_CHECKPOINT_CHECKPOINT_DIRECTORY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace planc {

// A complete checkpoint: a folder step-NNNNNNNN that holds a manifest.
struct CheckpointEntry {
  int64_t step = 0;  // optimizer steps done
  std::string path;
};

// "step-00000500".
std::string CheckpointName(int64_t step);
// The step in such a name.
std::optional<int64_t> StepOfName(const std::string& name);

// The complete checkpoints under `directory`, oldest first; empty when it does not exist.
std::vector<CheckpointEntry> ListCheckpoints(const std::string& directory);

// Makes an empty folder under `directory` for the checkpoint of `step` to be written into, and
// returns its path; what an interrupted save of that step left is removed first. Errors: Internal.
absl::StatusOr<std::string> BeginCheckpoint(const std::string& directory, int64_t step);
// That path.
std::string UnfinishedPath(const std::string& directory, int64_t step);
// Gives the folder its final name, in place of an older checkpoint of that step. Errors: Internal.
absl::Status FinishCheckpoint(const std::string& directory, int64_t step);

// Removes all but the newest `keep` complete checkpoints, and what interrupted saves left behind.
// Errors: Internal naming the path.
absl::Status PruneCheckpoints(const std::string& directory, int64_t keep);

}  // namespace planc

#endif  // PLANC_RUNTIME_CHECKPOINT_CHECKPOINT_DIRECTORY_H_
