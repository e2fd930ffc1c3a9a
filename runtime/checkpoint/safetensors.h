#ifndef PLANC_RUNTIME_CHECKPOINT_SAFETENSORS_H_
#define PLANC_RUNTIME_CHECKPOINT_SAFETENSORS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/checkpoint/file_system.h"
#include "runtime/data/mapped_file.h"

namespace planc {

// The safetensors file format: u64 length of the header, little endian; the header, a JSON object
// of {"dtype", "shape", "data_offsets"} by tensor name; the tensors' bytes.

// A float32 tensor to be written.
struct TensorData {
  std::string key;
  std::vector<int64_t> shape;
  const float* data = nullptr;
  std::vector<int64_t> offset = {};  // in the whole of which it is a part; empty: it is the whole
};

// Writes a file with these tensors, in this order, and `metadata` as its __metadata__, and waits
// until it is on the disk. Errors: Internal naming the path and, where it applies, the tensor;
// OutOfRange naming tensor and element for a value that is not finite.
absl::Status WriteSafetensors(const std::string& path, const std::vector<TensorData>& tensors,
                              const std::map<std::string, std::string>& metadata,
                              const FileSystem& files = HostFileSystem());

// The same with metadata that depend on the tensors' checksums, which are taken on the way to the
// file, so that memory is read once. `metadata` is called with the XXH3-64 of each tensor; the
// length of what it returns must not depend on them.
using MetadataOfChecksums =
    std::function<std::map<std::string, std::string>(const std::vector<uint64_t>& checksums)>;
absl::Status WriteChecksummedSafetensors(const std::string& path,
                                         const std::vector<TensorData>& tensors,
                                         const MetadataOfChecksums& metadata,
                                         const FileSystem& files = HostFileSystem());

// A safetensors file, mapped for reading.
class SafetensorsFile {
 public:
  struct Tensor {
    std::string dtype;  // as in the header: "F32"
    std::vector<int64_t> shape;
    const char* data = nullptr;
    int64_t bytes = 0;
  };

  // Which types of elements a file may have.
  enum class Types { kFloat32, kAll };

  // Errors: DataLoss naming the path and what is wrong. Every byte after the header belongs to
  // exactly one tensor.
  static absl::StatusOr<SafetensorsFile> Open(const std::string& path,
                                              Types types = Types::kFloat32);

  const std::map<std::string, Tensor>& tensors() const { return tensors_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  int64_t bytes() const { return file_.size(); }
  // XXH3-64 of all bytes before the tensors.
  uint64_t header_checksum() const { return header_checksum_; }
  // Reads one of the tensors into memory. Errors: as MappedFile::Fetch.
  absl::Status Fetch(const Tensor& tensor) const { return file_.Fetch(tensor.data, tensor.bytes); }
  // Gives back the memory that one of the tensors takes; using it again reads it again.
  void ReleaseMemory(const Tensor& tensor) const { file_.ReleaseMemory(tensor.data, tensor.bytes); }

 private:
  // Reads the header of `header_bytes` bytes.
  absl::Status Parse(const std::string& path, int64_t header_bytes, Types types);

  MappedFile file_;
  std::map<std::string, Tensor> tensors_;
  std::map<std::string, std::string> metadata_;
  uint64_t header_checksum_ = 0;
};

// XXH3-64 of `bytes` bytes.
uint64_t Checksum(const void* data, int64_t bytes);

}  // namespace planc

#endif  // PLANC_RUNTIME_CHECKPOINT_SAFETENSORS_H_
