#ifndef PLANC_RUNTIME_CHECKPOINT_HUGGINGFACE_MODEL_FOLDER_H_
#define PLANC_RUNTIME_CHECKPOINT_HUGGINGFACE_MODEL_FOLDER_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/checkpoint/json_fields.h"
#include "runtime/checkpoint/safetensors.h"
#include "schemas/job.pb.h"

namespace planc {

// The model that the config.json of the Hugging Face folder `path` describes; nothing else of the
// folder is read. Errors: InvalidArgument when it is no such folder or no such model (see
// ModelOfConfig); DataLoss for a file that cannot be read.
absl::StatusOr<proto::Model> ModelOfFolder(const std::string& path);

// A Hugging Face folder, opened for reading: config.json, and model.safetensors or the files that
// model.safetensors.index.json lists.
class ModelFolder {
 public:
  struct Entry {
    std::string file;  // path
    SafetensorsFile::Tensor tensor;
  };

  // Errors: InvalidArgument when it is no such folder; DataLoss naming the file that is damaged or
  // missing.
  static absl::StatusOr<ModelFolder> Open(const std::string& path);

  const std::string& path() const { return path_; }
  const Json& config() const { return config_; }
  // By name; names of GPT-2 begin with "transformer." whether or not they do in the file.
  const std::map<std::string, Entry>& tensors() const { return tensors_; }
  // Whether Read knows the type of the tensor's elements.
  static bool IsReadable(const Entry& entry);
  // The values of a tensor of F32, BF16 or F16, row-major, to `out`. REQUIRES: IsReadable. Errors:
  // DataLoss naming file and tensor for a value that is not finite.
  absl::Status Read(const std::string& name, float* out) const;

 private:
  explicit ModelFolder(std::string path) : path_(std::move(path)) {}
  absl::Status ReadConfig();
  // Opens all files and enters their tensors.
  absl::Status OpenFiles();
  absl::Status OpenIndexed(const std::string& index_path);
  absl::Status OpenFile(const std::string& name);

  std::string path_;
  Json config_;
  std::map<std::string, SafetensorsFile> files_;  // by name
  std::map<std::string, Entry> tensors_;
};

}  // namespace planc

#endif  // PLANC_RUNTIME_CHECKPOINT_HUGGINGFACE_MODEL_FOLDER_H_
