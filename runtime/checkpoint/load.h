#ifndef PLANC_RUNTIME_CHECKPOINT_LOAD_H_
#define PLANC_RUNTIME_CHECKPOINT_LOAD_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/checkpoint/agreement.h"
#include "runtime/step/shard_view.h"
#include "schemas/plan.h"

namespace planc {

// Fills the shards of this rank from the checkpoint folder `checkpoint`, saved on any mesh, and
// returns the number of optimizer steps done. Every tensor that is read is checked first; padding
// becomes zero. `tp` is the rank's tensor-parallel coordinate.
// Errors: NotFound without a manifest; FailedPrecondition when the checkpoint is of another model;
// DataLoss naming file and tensor for bytes that are missing or not as they were written. The
// shards are then undefined.
absl::StatusOr<int64_t> LoadCheckpoint(const Plan& plan, int64_t tp, const std::string& checkpoint,
                                       const std::vector<ShardView>& shards);

// What checkpoint.resume asks for, on all ranks alike: `never` loads nothing, a path loads that
// checkpoint or fails, `auto` loads the newest checkpoint under `directory` that every rank can
// read, going back past damaged ones, and nothing when there is none. Returns the number of
// optimizer steps done, or nothing when the run starts anew. `base` is what a relative path is
// relative to. `notices` receives one line for each checkpoint that was passed over.
// Errors: as LoadCheckpoint, and under `auto` DataLoss when there are checkpoints and none can be
// read.
absl::StatusOr<std::optional<int64_t>> ResumeTraining(
    const Plan& plan, int64_t tp, const std::string& directory, const std::string& base,
    const std::vector<ShardView>& shards, Agreement& agreement, std::vector<std::string>* notices);

}  // namespace planc

#endif  // PLANC_RUNTIME_CHECKPOINT_LOAD_H_
