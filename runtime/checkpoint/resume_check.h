#ifndef PLANC_RUNTIME_CHECKPOINT_RESUME_CHECK_H_
#define PLANC_RUNTIME_CHECKPOINT_RESUME_CHECK_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "kernels/instruction_set.h"
#include "runtime/checkpoint/job_changes.h"
#include "runtime/checkpoint/manifest.h"
#include "runtime/data/data_identity.h"
#include "schemas/plan.h"

namespace planc {

// How the job of a plan compares with a checkpoint, judged by the manifest alone.
struct ResumeCheck {
  std::vector<JobChange> changes;
  std::vector<std::string> shapes;  // how the tensors differ, one each; can never be allowed
  // Why the instructions alone give other bits from here on; empty where they do not.
  std::string bits;
  std::string rates = "";  // RateChange of the next step
  // How to keep the rates as they were; empty unless their change is refused.
  std::string way = "";
  DataChange data = DataChange::kUnknown;  // of data.train; AddDataChanges finds out

  // Nothing that spreads the training over ranks differs.
  bool SameLayout() const;
  // Nothing that is known says that the resumed run is not bit-identical to one that never stopped.
  // Whether the data are the same is known only where `data` says so.
  bool SameBits() const;
};
// `now`: what the job will compute with; unset: not compared.
ResumeCheck CompareWithCheckpoint(const Plan& plan, const Manifest& manifest,
                                  std::optional<host::InstructionSet> now = std::nullopt);

// OK when the job may go on from the checkpoint. Errors: FailedPrecondition with every reason, one
// a line, each with both values, and how to allow it.
absl::Status RefusalOf(const ResumeCheck& check, const std::string& checkpoint);

// What the user should know about a resume that goes on, one line each: allowed and other changes,
// another layout, and instructions that give other bits.
std::vector<std::string> NoticesOf(const ResumeCheck& check, const Plan& plan,
                                   const Manifest& manifest);

// Bytes of shard files that the ranks of a plan read to load a checkpoint: the headers of the files
// they need, and the whole of each tensor of which they need a part, because its checksum is
// compared.
struct LoadSize {
  int64_t largest_rank = 0;  // the first that reads the most
  int64_t largest_bytes = 0;
  int64_t all_ranks_bytes = 0;
  int64_t saved_bytes = 0;   // of all shard files
  int64_t tensor_bytes = 0;  // of the largest tensor: what a rank maps at a time
};
// REQUIRES: the manifest is of the plan's model (ResumeCheck::shapes is empty).
LoadSize LoadSizeOf(const Plan& plan, const Manifest& manifest);

}  // namespace planc

#endif  // PLANC_RUNTIME_CHECKPOINT_RESUME_CHECK_H_
