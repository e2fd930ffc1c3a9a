#ifndef PLANC_RUNTIME_CHECKPOINT_HUGGINGFACE_INITIAL_WEIGHTS_H_
#define PLANC_RUNTIME_CHECKPOINT_HUGGINGFACE_INITIAL_WEIGHTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "runtime/step/shard_view.h"
#include "schemas/plan.h"

namespace planc {

// What checkpoint.initial names: a checkpoint of planc, a folder of them, of which the newest is
// taken, or a Hugging Face folder.

// OK when it fits the model of `plan`, by its headers and manifest; no values are read. Errors:
// FailedPrecondition with all reasons, one a line; NotFound when there is neither; else as
// ReadManifest and ModelFolder::Open.
absl::Status CheckInitialWeights(const std::string& path, const Plan& plan);

// Fills master weights from it, and moments with zeros. `shards`: all of this rank, whose
// coordinate along tp is `tp`. Errors: as CheckInitialWeights; DataLoss naming file and tensor when
// values are damaged.
absl::Status LoadInitialWeights(const std::string& path, const Plan& plan, int64_t tp,
                                const std::vector<ShardView>& shards);

}  // namespace planc

#endif  // PLANC_RUNTIME_CHECKPOINT_HUGGINGFACE_INITIAL_WEIGHTS_H_
