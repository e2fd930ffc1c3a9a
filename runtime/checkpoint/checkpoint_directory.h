#ifndef PLANC_RUNTIME_CHECKPOINT_CHECKPOINT_DIRECTORY_H_
#define PLANC_RUNTIME_CHECKPOINT_CHECKPOINT_DIRECTORY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/checkpoint/file_system.h"

namespace planc {

// A complete checkpoint: a folder step-NNNNNNNN that holds a manifest, or step-NNNNNNNN.old where a
// save of that step was interrupted while it replaced it.
struct CheckpointEntry {
  int64_t step = 0;  // optimizer steps done
  std::string path;
};

// "step-00000500".
std::string CheckpointName(int64_t step);
// The step in such a name.
std::optional<int64_t> StepOfName(const std::string& name);

// The complete checkpoints under `directory`, oldest first; empty when it does not exist. Errors:
// Internal with the reason when the system does not let it be seen, or one of them (readable.h).
absl::StatusOr<std::vector<CheckpointEntry>> FindCheckpoints(const std::string& directory);
// The same for those to whom it makes no difference what cannot be seen.
std::vector<CheckpointEntry> ListCheckpoints(const std::string& directory);

// The functions below are called by one rank, and by one process at a time. Errors: Internal naming
// the path and the system's reason. `run_id`: of the run that saves; checkpoints of other runs and
// of none are then never removed, and one whose name is needed is renamed into a folder run-ID of
// its own run. Empty: whoever's they are.

// Makes an empty folder under `directory` for the checkpoint of `step` to be written into, and
// returns its path. What interrupted saves left is repaired first: a checkpoint that was being
// replaced gets its name back, an unfinished one of that step is removed.
absl::StatusOr<std::string> BeginCheckpoint(const std::string& directory, int64_t step,
                                            const FileSystem& files = HostFileSystem(),
                                            const std::string& run_id = "");
// That path.
std::string UnfinishedPath(const std::string& directory, int64_t step);
// Gives the folder its final name, in place of an older checkpoint of that step, which is set aside
// until PruneCheckpoints. Whenever it is interrupted, and when it fails, the older one or the new
// one is complete. REQUIRES: BeginCheckpoint of that step.
absl::Status FinishCheckpoint(const std::string& directory, int64_t step,
                              const FileSystem& files = HostFileSystem(),
                              const std::string& run_id = "");

// Removes all but the newest `keep` of the complete checkpoints up to `last_step`, and what
// interrupted saves left behind. Later steps were abandoned, or belong to another run in the
// same directory: they neither count nor are they touched.
absl::Status PruneCheckpoints(const std::string& directory, int64_t keep, int64_t last_step,
                              const FileSystem& files = HostFileSystem(),
                              const std::string& run_id = "");

}  // namespace planc

#endif  // PLANC_RUNTIME_CHECKPOINT_CHECKPOINT_DIRECTORY_H_
