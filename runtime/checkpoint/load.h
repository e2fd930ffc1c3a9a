#ifndef PLANC_RUNTIME_CHECKPOINT_LOAD_H_
#define PLANC_RUNTIME_CHECKPOINT_LOAD_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/checkpoint/manifest.h"
#include "runtime/step/shard_view.h"
#include "schemas/plan.h"

namespace planc {

// Fills the shards of this rank from the checkpoint folder `checkpoint`, saved on any mesh, and
// returns the number of optimizer steps done. Every tensor that is read is checked first; padding
// becomes zero. `tp` is the rank's tensor-parallel coordinate. Settings other than the shapes of
// the tensors are not compared: see ResumeTraining.
// Errors: NotFound without a manifest; FailedPrecondition when the checkpoint is of another model
// or format version; DataLoss naming file and tensor for bytes that are missing or not as they were
// written; OutOfRange naming tensor and element for a value that is not finite. The shards are then
// undefined.
absl::StatusOr<int64_t> LoadCheckpoint(const Plan& plan, int64_t tp, const std::string& checkpoint,
                                       const std::vector<ShardView>& shards);

// The same, once the manifest is read and was found to be of the plan's model.
absl::Status LoadTensors(const Plan& plan, int64_t tp, const std::string& checkpoint,
                         const Manifest& manifest, const std::vector<ShardView>& shards);

}  // namespace planc

#endif  // PLANC_RUNTIME_CHECKPOINT_LOAD_H_
