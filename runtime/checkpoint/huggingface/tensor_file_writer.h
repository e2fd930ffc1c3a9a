#ifndef PLANC_RUNTIME_CHECKPOINT_HUGGINGFACE_TENSOR_FILE_WRITER_H_
#define PLANC_RUNTIME_CHECKPOINT_HUGGINGFACE_TENSOR_FILE_WRITER_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/checkpoint/durable_file.h"

namespace planc {

// Number formats of an exported folder.
enum class ExportType : uint8_t { kF32, kBf16 };
int64_t ElementBytes(ExportType type);

// Name and shape of a tensor to be written.
struct TensorName {
  std::string name;
  std::vector<int64_t> shape;
};

// Numbers of the tensors of each file, in order, when a file holds at most `most_bytes` of data; a
// larger tensor has a file of its own.
std::vector<std::vector<size_t>> SplitOverFiles(const std::vector<TensorName>& tensors,
                                                ExportType type, int64_t most_bytes);

// Writes a safetensors file tensor by tensor, so that no more than one is in memory. Errors:
// Internal naming the path and the system's reason.
class TensorFileWriter {
 public:
  // `files` must outlive this object.
  static absl::StatusOr<TensorFileWriter> Create(const FileSystem& files, const std::string& path,
                                                 const std::vector<TensorName>& tensors,
                                                 ExportType type);
  // The values of the next tensors; bf16 is rounded to nearest, ties to even. `what` names them in
  // errors. Errors: also OutOfRange for a value that bf16 would make infinite.
  absl::Status Append(const float* values, int64_t count, const std::string& what);
  // Waits until the file is on the disk. REQUIRES: all values of all tensors were appended.
  absl::Status Finish();

 private:
  TensorFileWriter(DurableFile file, ExportType type, int64_t begin, int64_t end)
      : file_(std::move(file)), type_(type), at_(begin), end_(end) {}

  DurableFile file_;
  const ExportType type_;
  int64_t at_;         // bytes from the start of the file
  const int64_t end_;  // of the file
};

}  // namespace planc

#endif  // PLANC_RUNTIME_CHECKPOINT_HUGGINGFACE_TENSOR_FILE_WRITER_H_
