#ifndef PLANC_PLANC_COMMAND_CHECKPOINT_CONVERT_H_
#define PLANC_PLANC_COMMAND_CHECKPOINT_CONVERT_H_

#include <ostream>
#include <string>

#include "planc/flags.h"

namespace planc {

// planc checkpoint export: the weights of a checkpoint, or of the newest in a folder of
// checkpoints, as a new Hugging Face folder. Flags: --dtype, --max-shard-size. Returns an ExitCode:
// kExitJobError when it cannot be done as asked, kExitTrainingFault for a damaged checkpoint.
int ExportCheckpoint(const std::string& checkpoint, const std::string& folder, const Flags& flags,
                     std::ostream& out, std::ostream& err);

// planc checkpoint import: a Hugging Face folder as a new checkpoint of step 0. Flags: --job (a job
// or plan file; without it a job is written beside the checkpoint), --set. Returns an ExitCode:
// kExitJobError when the folder does not fit the job, kExitTrainingFault for damaged files, and
// those of LoadPlan.
int ImportCheckpoint(const std::string& folder, const std::string& checkpoint, const Flags& flags,
                     std::ostream& out, std::ostream& err);

}  // namespace planc

#endif  // PLANC_PLANC_COMMAND_CHECKPOINT_CONVERT_H_
