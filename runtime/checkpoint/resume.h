#ifndef PLANC_RUNTIME_CHECKPOINT_RESUME_H_
#define PLANC_RUNTIME_CHECKPOINT_RESUME_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/instruction_set.h"
#include "runtime/checkpoint/agreement.h"
#include "runtime/checkpoint/manifest.h"
#include "runtime/checkpoint/run_checkpoints.h"
#include "runtime/step/shard_view.h"
#include "schemas/plan.h"

namespace planc {

// What checkpoint.resume asks for, on all ranks alike: `never` loads nothing, a path loads that
// checkpoint or fails, `auto` loads the newest checkpoint under `directory` that every rank can
// read, going back past damaged ones, and nothing when there is none. Returns the number of
// optimizer steps done, or nothing when the run starts anew.
//
// Together the ranks read, and check, every tensor of the checkpoint. `base` is what a relative
// path is relative to. `notices` receives one line for each thing the user should know: damaged
// checkpoints that were passed over, which checkpoint is resumed from and why, and what differs
// between the job that saved and this one. `stop_requested` is asked between checkpoints.
// `instead` takes the place of checkpoint.resume. `selection`: whose checkpoints `auto` may take.
// `instruction_set` is what the job computes with (unset: not compared with what the checkpoint was
// computed with). `from`, if not null, receives step, job and data of the checkpoint's manifest.
//
// Errors: FailedPrecondition when the job differs from the one that saved in a setting of model,
// optimizer or lr_schedule that checkpoint.allow_changes does not list, or the checkpoint is of
// another format version (neither sends `auto` back to an older checkpoint); DataLoss naming rank,
// file and tensor when the checkpoint is damaged, under `auto` when all are; OutOfRange naming
// tensor and element when a path's has values that are not finite, which `auto` passes over like a
// damaged one; Internal when the system does not let directory, manifest or files be seen
// (readable.h); NotFound for a path without a manifest; Cancelled when some rank was asked to stop.
// The shards are then undefined.
absl::StatusOr<std::optional<int64_t>> ResumeTraining(
    const Plan& plan, int64_t tp, const std::string& directory, const std::string& base,
    const std::vector<ShardView>& shards, Agreement& agreement, std::vector<std::string>* notices,
    const std::function<bool()>& stop_requested = nullptr,
    const std::optional<std::string>& instead = std::nullopt,
    const CheckpointSelection& selection = {},
    std::optional<host::InstructionSet> instruction_set = std::nullopt, Manifest* from = nullptr);

}  // namespace planc

#endif  // PLANC_RUNTIME_CHECKPOINT_RESUME_H_
