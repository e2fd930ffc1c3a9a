#ifndef PLANC_RUNTIME_CHECKPOINT_HUGGINGFACE_IMPORT_H_
#define PLANC_RUNTIME_CHECKPOINT_HUGGINGFACE_IMPORT_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/checkpoint/file_system.h"
#include "schemas/plan.h"

namespace planc {

struct ImportReport {
  int64_t parameters = 0;
  int64_t elements = 0;
  std::vector<std::string> ignored;   // tensors that the model does not need, and why
  std::vector<std::string> problems;  // why the folder does not fit the job's model
};

// Whether the tensors of a Hugging Face folder are those of the plan's model; their values are not
// read, and nothing is written. Errors: as ImportFolder.
absl::StatusOr<ImportReport> InspectFolder(const std::string& folder, const Plan& plan);

// Makes a checkpoint of step 0 from a Hugging Face folder of F32, BF16 or F16 tensors: its weights,
// and moments of zero. With problems, all of which are found, nothing is written. `plan` is of the
// job that will resume from it; `versions` go into the manifest. At most two tensors are in memory.
// Errors: InvalidArgument when `folder` is no Hugging Face folder, the checkpoint exists, or the
// model has no Hugging Face form; DataLoss for damaged files and for values that are not finite;
// Internal for errors of the system. There is then no checkpoint.
absl::StatusOr<ImportReport> ImportFolder(const std::string& folder, const Plan& plan,
                                          const std::map<std::string, std::string>& versions,
                                          const std::string& checkpoint, const FileSystem& files);

}  // namespace planc

#endif  // PLANC_RUNTIME_CHECKPOINT_HUGGINGFACE_IMPORT_H_
