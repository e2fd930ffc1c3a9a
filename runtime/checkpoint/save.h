#ifndef PLANC_RUNTIME_CHECKPOINT_SAVE_H_
#define PLANC_RUNTIME_CHECKPOINT_SAVE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "runtime/checkpoint/agreement.h"
#include "runtime/step/shard_view.h"
#include "schemas/plan.h"

namespace planc {

// Writes `directory`/step-NNNNNNNN. Called by every rank between two steps; returns when the
// checkpoint is complete and durable, or has failed, on all of them. Each element of the model is
// written by one rank: the first of those that hold it. All files go to a folder with another name
// first, manifest last, which is then renamed, so a folder step-NNNNNNNN is always whole.
// `step`: optimizer steps done. `shards`: all of this rank. Afterwards rank 0 removes all but the
// newest checkpoint.keep.
// Errors: Internal naming the path and the reason of the operating system; DataLoss when rank 0
// cannot read what the others wrote, e.g. because they do not share the file system.
absl::Status SaveCheckpoint(const Plan& plan, int64_t rank, const std::vector<ShardView>& shards,
                            int64_t step, const std::string& directory, Agreement& agreement);

// Whether `rank` is the one that writes its shard of `unit`: its dp_replicate and cp coordinates
// are 0, so is tp where the unit is the same on all of tp, and no stage before holds the unit.
bool WritesUnit(const Plan& plan, int64_t rank, int unit);

}  // namespace planc

#endif  // PLANC_RUNTIME_CHECKPOINT_SAVE_H_
