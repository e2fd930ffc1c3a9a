#ifndef PLANC_RUNTIME_CHECKPOINT_SAVE_H_
#define PLANC_RUNTIME_CHECKPOINT_SAVE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/instruction_set.h"
#include "runtime/checkpoint/agreement.h"
#include "runtime/checkpoint/file_system.h"
#include "runtime/checkpoint/manifest.h"
#include "runtime/checkpoint/shard_boxes.h"
#include "runtime/process_group/storage_watch.h"
#include "runtime/step/shard_view.h"
#include "schemas/plan.h"

namespace planc {

// What a save needs beyond the plan, and where it leaves what it has to say.
struct SaveOptions {
  // Versions of the program and of its libraries, by name, for the manifest.
  std::map<std::string, std::string> versions;
  // Called on rank 0 once everything is written and before the checkpoint becomes valid: what must
  // be on the disk by then. Its error makes the save fail.
  std::function<absl::Status()> before_commit;
  // What the job computes with, for the manifest; unset where nothing was computed.
  std::optional<host::InstructionSet> instruction_set = std::nullopt;
  const FileSystem* files = nullptr;  // null: HostFileSystem
  std::string run_id;                 // of the run that saves, for the manifest; may be empty
  StorageWatch* storage = nullptr;    // told of every call to `files` by Checkpointer; may be null
  int64_t branch = 0;                 // SavedRun::branch
  // Whether pruning leaves a checkpoint from which a step was done, whose loss and gradients were
  // then finite, beside the new one, from which none was: at least two are kept.
  bool keep_proven = false;
  // On rank 0, what the checkpoint says of the data when it is of that step; null: nothing.
  std::function<SavedData(int64_t step)> data = nullptr;
  // The newest checkpoint of the chain, which the next one names as its parent and then takes the
  // place of. Used by rank 0. Null: checkpoints without a parent.
  std::shared_ptr<std::optional<ParentCheckpoint>> tip = nullptr;
};

// A complete checkpoint; on ranks other than 0 only `step` is set.
struct SavedCheckpoint {
  int64_t step = 0;
  int64_t bytes = 0;   // of all files
  std::string notice;  // what went wrong without harming it, e.g. older ones were not removed
};

// Writes `directory`/step-NNNNNNNN. Called by every rank; returns when the checkpoint is complete
// and durable, or has failed, on all of them. Each element of the model is written by one rank: the
// first of those that hold it. All files go to a folder with another name first, manifest last,
// which is then renamed, so a folder step-NNNNNNNN is always whole. A save that fails leaves older
// checkpoints as they were and removes what it wrote. So does one that finds a value that is NaN or
// infinite: such a state is not saved.
// `step`: optimizer steps done. `shards`: all of this rank. Afterwards rank 0 removes all but the
// newest checkpoint.keep.
// Errors, on all ranks: Internal naming the rank, the path, the tensor where there is one, and the
// reason of the operating system; OutOfRange naming the rank, the tensor and its first element that
// is not finite; DataLoss when rank 0 cannot read what the others wrote, e.g.
// because they do not share the file system; those of `agreement` when a rank is lost.
absl::StatusOr<SavedCheckpoint> WriteCheckpoint(const Plan& plan, int64_t rank,
                                                const std::vector<ShardView>& shards, int64_t step,
                                                const std::string& directory, Agreement& agreement,
                                                const SaveOptions& options = {});
// The same, without the report.
absl::Status SaveCheckpoint(const Plan& plan, int64_t rank, const std::vector<ShardView>& shards,
                            int64_t step, const std::string& directory, Agreement& agreement,
                            const SaveOptions& options = {});

}  // namespace planc

#endif  // PLANC_RUNTIME_CHECKPOINT_SAVE_H_
