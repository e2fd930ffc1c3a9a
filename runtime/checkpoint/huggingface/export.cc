#include "runtime/checkpoint/huggingface/export.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/checkpoint/huggingface/model_config.h"
#include "runtime/checkpoint/huggingface/new_folder.h"
#include "runtime/checkpoint/huggingface/tensor_layout.h"
#include "runtime/checkpoint/json_fields.h"
#include "runtime/checkpoint/manifest.h"
#include "runtime/checkpoint/saved_tensors.h"
#include "schemas/status.h"

namespace planc {
namespace {

// "model.safetensors", or "model-00002-of-00003.safetensors".
std::string TensorFileName(size_t index, size_t count) {
  if (count == 1) return "model.safetensors";
  return absl::StrFormat("model-%05d-of-%05d.safetensors", index + 1, count);
}

// The tensors of one checkpoint as a Hugging Face folder has them.
class ExportSource {
 public:
  ExportSource(const std::string& checkpoint, const Manifest& manifest)
      : manifest_(manifest),
        saved_(checkpoint, manifest),
        tensors_(FolderTensors(manifest.parameters)) {
    for (const FolderTensor& tensor : tensors_) names_.push_back({tensor.name, tensor.shape});
  }

  const std::vector<TensorName>& names() const { return names_; }

  // The values of a tensor, valid until the next call.
  absl::StatusOr<const std::vector<float>*> Values(size_t index) {
    const FolderTensor& tensor = tensors_[index];
    values_.resize(static_cast<size_t>(BoxElements(Box{{}, tensor.shape})));
    const bool as_saved = !tensor.transposed && tensor.parameters.size() == 1;
    for (size_t part = 0; part < tensor.parameters.size(); ++part) {
      const std::string& name = tensor.parameters[part];
      const std::vector<int64_t>& shape = manifest_.parameters.at(name).shape;
      const Box whole{std::vector<int64_t>(shape.size(), 0), shape};
      if (!as_saved) part_.resize(static_cast<size_t>(BoxElements(whole)));
      float* const out = as_saved ? values_.data() : part_.data();
      PLANC_RETURN_IF_ERROR(saved_.Read(name, StateKind::kMaster, whole, out));
      if (!as_saved) JoinParameter(tensor, part, part_.data(), values_.data());
    }
    return &values_;
  }

 private:
  const Manifest& manifest_;
  SavedTensors saved_;
  const std::vector<FolderTensor> tensors_;
  std::vector<TensorName> names_;
  std::vector<float> values_;
  std::vector<float> part_;  // one parameter of a tensor that is not laid out as it was saved
};

absl::Status WriteTensorFile(ExportSource& source, const std::vector<size_t>& chosen,
                             const std::string& path, ExportType type, const FileSystem& files) {
  std::vector<TensorName> names;
  for (const size_t index : chosen) names.push_back(source.names()[index]);
  PLANC_ASSIGN_OR_RETURN(TensorFileWriter writer,
                         TensorFileWriter::Create(files, path, names, type));
  for (const size_t index : chosen) {
    PLANC_ASSIGN_OR_RETURN(const std::vector<float>* const values, source.Values(index));
    PLANC_RETURN_IF_ERROR(writer.Append(values->data(), static_cast<int64_t>(values->size()),
                                        absl::StrCat("tensor ", source.names()[index].name)));
  }
  return writer.Finish();
}

}  // namespace

absl::StatusOr<ExportReport> ExportFolder(const std::string& checkpoint, const std::string& folder,
                                          const ExportOptions& options, const FileSystem& files) {
  PLANC_ASSIGN_OR_RETURN(const Manifest manifest, ReadManifest(checkpoint));
  const bool bf16 = options.type == ExportType::kBf16;
  const absl::StatusOr<Json> config =
      ModelConfig(manifest.job.model(), bf16 ? "bfloat16" : "float32");
  if (!config.ok()) return WithContext(config.status(), checkpoint);
  PLANC_ASSIGN_OR_RETURN(NewFolder target, NewFolder::Begin(files, folder));
  PLANC_RETURN_IF_ERROR(target.Write("config.json", absl::StrCat(config->dump(2), "\n")));

  ExportSource source(checkpoint, manifest);
  ExportReport report;
  report.model_type = (*config)["model_type"].get<std::string>();
  const std::vector<std::vector<size_t>> split =
      SplitOverFiles(source.names(), options.type, options.most_file_bytes);
  Json weight_map = Json::object();
  for (size_t i = 0; i < split.size(); ++i) {
    const std::string name = TensorFileName(i, split.size());
    PLANC_RETURN_IF_ERROR(WriteTensorFile(
        source, split[i], absl::StrCat(target.unfinished(), "/", name), options.type, files));
    ++report.files;
    for (const size_t index : split[i]) {
      const TensorName& tensor = source.names()[index];
      weight_map[tensor.name] = name;
      ++report.tensors;
      report.bytes += BoxElements(Box{{}, tensor.shape}) * ElementBytes(options.type);
    }
  }
  if (report.files > 1) {
    const Json index = {{"metadata", {{"total_size", report.bytes}}}, {"weight_map", weight_map}};
    PLANC_RETURN_IF_ERROR(
        target.Write("model.safetensors.index.json", absl::StrCat(index.dump(2), "\n")));
  }
  PLANC_RETURN_IF_ERROR(target.Commit());
  return report;
}

}  // namespace planc
