#ifndef PLANC_RUNTIME_CHECKPOINT_NEWEST_CHECKPOINT_H_
#define PLANC_RUNTIME_CHECKPOINT_NEWEST_CHECKPOINT_H_

#include <optional>
#include <string>

#include "runtime/checkpoint/checkpoint_directory.h"
#include "runtime/checkpoint/run_checkpoints.h"

namespace planc {

// The newest of the covered checkpoints whose manifest can be read and is of the step that the
// folder is named for.
std::optional<CheckpointEntry> NewestCheckpoint(const std::string& directory,
                                                const CheckpointSelection& selection);

}  // namespace planc

#endif  // PLANC_RUNTIME_CHECKPOINT_NEWEST_CHECKPOINT_H_
