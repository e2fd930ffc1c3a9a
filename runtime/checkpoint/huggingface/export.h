#ifndef PLANC_RUNTIME_CHECKPOINT_HUGGINGFACE_EXPORT_H_
#define PLANC_RUNTIME_CHECKPOINT_HUGGINGFACE_EXPORT_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/checkpoint/file_system.h"
#include "runtime/checkpoint/huggingface/tensor_file_writer.h"

namespace planc {

struct ExportOptions {
  ExportType type = ExportType::kF32;
  int64_t most_file_bytes = 5'000'000'000;  // of tensors, in one file
};

struct ExportReport {
  std::string model_type;
  int64_t tensors = 0;
  int64_t bytes = 0;  // of the tensors
  int64_t files = 0;  // that hold tensors
};

// Writes the master weights of a checkpoint as a new Hugging Face folder: config.json, and
// model.safetensors or several files with an index. Each value is checked against its checksum
// first. At most one tensor is in memory, two where it is transposed.
// Errors: NotFound without a manifest; InvalidArgument when the folder exists and is not empty or
// the model has no Hugging Face form; DataLoss for a damaged checkpoint; OutOfRange for a weight
// that is not finite, or would not be in bf16; Internal for errors of the system. The folder then
// does not exist.
absl::StatusOr<ExportReport> ExportFolder(const std::string& checkpoint, const std::string& folder,
                                          const ExportOptions& options, const FileSystem& files);

}  // namespace planc

#endif  // PLANC_RUNTIME_CHECKPOINT_HUGGINGFACE_EXPORT_H_
