#include "runtime/checkpoint/huggingface/import.h"

#include <cstring>
#include <regex>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/checkpoint/huggingface/model_config.h"
#include "runtime/checkpoint/huggingface/model_folder.h"
#include "runtime/checkpoint/huggingface/new_folder.h"
#include "runtime/checkpoint/huggingface/tensor_file_writer.h"
#include "runtime/checkpoint/huggingface/tensor_layout.h"
#include "runtime/checkpoint/manifest.h"
#include "runtime/checkpoint/safetensors.h"
#include "runtime/checkpoint/shard_boxes.h"
#include "schemas/status.h"

namespace planc {
namespace {

constexpr int64_t kFileBytes = 5'000'000'000;  // of tensors in one file of the checkpoint
constexpr char kHead[] = "lm_head.weight";

// Why a tensor that the model does not have does no harm; empty when it may.
std::string WhyHarmless(const std::string& name) {
  static const auto* const inverse_frequencies =
      new std::regex("model\\.layers\\.[0-9]+\\.self_attn\\.rotary_emb\\.inv_freq");
  static const auto* const masks =
      new std::regex("transformer\\.h\\.[0-9]+\\.attn\\.(bias|masked_bias)");
  if (std::regex_match(name, *inverse_frequencies)) {
    return "inverse frequencies of the rotary embedding, a function of rope_theta";
  }
  if (std::regex_match(name, *masks)) return "the causal mask, a constant";
  return "";
}

// Compares the tensors of a folder with those of the model.
class TensorCheck {
 public:
  TensorCheck(const ModelFolder& folder, const std::vector<FolderTensor>& expected, bool tied,
              ImportReport* report)
      : folder_(folder), expected_(expected), tied_(tied), report_(report) {}

  void Run() {
    std::set<std::string> known;
    for (const FolderTensor& tensor : expected_) {
      known.insert(tensor.name);
      CheckExpected(tensor);
    }
    for (const auto& [name, entry] : folder_.tensors()) {
      if (known.count(name) == 0) CheckUnknown(name, entry);
    }
  }

 private:
  void CheckExpected(const FolderTensor& tensor) {
    const auto found = folder_.tensors().find(tensor.name);
    if (found == folder_.tensors().end()) {
      report_->problems.push_back(
          absl::StrCat(tensor.name, " ", ShapeText(tensor.shape), " is missing"));
      return;
    }
    const SafetensorsFile::Tensor& stored = found->second.tensor;
    if (stored.shape != tensor.shape) {
      report_->problems.push_back(absl::StrCat(tensor.name, " is ", ShapeText(stored.shape),
                                               ", but ", ShapeText(tensor.shape),
                                               " in the job's model"));
    }
    if (!ModelFolder::IsReadable(found->second)) {
      report_->problems.push_back(
          absl::StrCat(tensor.name, " is of type ", stored.dtype, "; F32, BF16 and F16 are read"));
    }
  }

  void CheckUnknown(const std::string& name, const ModelFolder::Entry& entry) {
    const std::string reason = WhyHarmless(name);
    if (!reason.empty()) {
      report_->ignored.push_back(absl::StrCat(name, ": ", reason));
    } else if (name == kHead && tied_) {
      CheckTiedHead(entry.tensor);
    } else {
      report_->problems.push_back(
          absl::StrCat(name, " ", ShapeText(entry.tensor.shape), " is not in the job's model"));
    }
  }

  // Some folders store a tied table twice.
  void CheckTiedHead(const SafetensorsFile::Tensor& head) {
    for (const char* const name : {"model.embed_tokens.weight", "transformer.wte.weight"}) {
      const auto found = folder_.tensors().find(name);
      if (found == folder_.tensors().end()) continue;
      const SafetensorsFile::Tensor& table = found->second.tensor;
      if (table.dtype == head.dtype && table.shape == head.shape &&
          std::memcmp(table.data, head.data, static_cast<size_t>(head.bytes)) == 0) {
        report_->ignored.push_back(absl::StrCat(kHead, ": the same values as ", name));
        return;
      }
    }
    report_->problems.push_back(absl::StrCat(
        kHead, " differs from the embedding, but the job's model has tie_embeddings: true"));
  }

  const ModelFolder& folder_;
  const std::vector<FolderTensor>& expected_;
  const bool tied_;
  ImportReport* const report_;
};

// Writes the files of the checkpoint and enters them in its manifest.
class CheckpointFiles {
 public:
  CheckpointFiles(const ModelFolder& source, const NewFolder& target, const FileSystem& files,
                  Manifest* manifest)
      : source_(source), target_(target), files_(files), manifest_(manifest) {}

  absl::Status WriteFile(const std::string& name, const std::vector<FolderTensor>& tensors) {
    file_ = name;
    std::vector<TensorName> names;
    for (const FolderTensor& tensor : tensors) {
      for (const std::string& parameter : tensor.parameters) {
        for (const StateKind kind : kAllStateKinds) {
          names.push_back({Key(parameter, kind), manifest_->parameters.at(parameter).shape});
        }
      }
    }
    const std::string path = absl::StrCat(target_.unfinished(), "/", name);
    PLANC_ASSIGN_OR_RETURN(TensorFileWriter writer,
                           TensorFileWriter::Create(files_, path, names, ExportType::kF32));
    for (const FolderTensor& tensor : tensors) PLANC_RETURN_IF_ERROR(Write(tensor, &writer));
    PLANC_RETURN_IF_ERROR(writer.Finish());
    PLANC_ASSIGN_OR_RETURN(const SafetensorsFile written, SafetensorsFile::Open(path));
    manifest_->files[name] = {written.bytes(), written.header_checksum()};
    return absl::OkStatus();
  }

 private:
  static std::string Key(const std::string& parameter, StateKind kind) {
    return absl::StrCat(parameter, ".", StateKindName(kind), ".0");
  }

  absl::Status Write(const FolderTensor& tensor, TensorFileWriter* writer) {
    const int64_t elements = BoxElements(Box{{}, tensor.shape});
    joined_.resize(static_cast<size_t>(elements));
    PLANC_RETURN_IF_ERROR(source_.Read(tensor.name, joined_.data()));
    const size_t parts = tensor.parameters.size();
    values_.resize(static_cast<size_t>(elements) / parts);
    for (size_t part = 0; part < parts; ++part) {
      const std::string& parameter = tensor.parameters[part];
      SplitParameter(tensor, part, joined_.data(), values_.data());
      PLANC_RETURN_IF_ERROR(WriteState(parameter, StateKind::kMaster, writer));
      values_.assign(values_.size(), 0.0f);
      PLANC_RETURN_IF_ERROR(WriteState(parameter, StateKind::kFirstMoment, writer));
      PLANC_RETURN_IF_ERROR(WriteState(parameter, StateKind::kSecondMoment, writer));
    }
    return absl::OkStatus();
  }

  // Writes values_.
  absl::Status WriteState(const std::string& name, StateKind kind, TensorFileWriter* writer) {
    SavedParameter& parameter = manifest_->parameters.at(name);
    const int64_t count = static_cast<int64_t>(values_.size());
    const Box whole{std::vector<int64_t>(parameter.shape.size(), 0), parameter.shape};
    const uint64_t checksum = Checksum(values_.data(), count * static_cast<int64_t>(sizeof(float)));
    parameter.state[static_cast<size_t>(kind)] = {{file_, Key(name, kind), whole, checksum}};
    return writer->Append(values_.data(), count, absl::StrCat("tensor ", Key(name, kind)));
  }

  const ModelFolder& source_;
  const NewFolder& target_;
  const FileSystem& files_;
  Manifest* const manifest_;
  std::string file_;           // being written
  std::vector<float> joined_;  // one tensor of the folder
  std::vector<float> values_;  // one parameter of it
};

// The tensors of each file of the checkpoint: master weights and both moments of a tensor lie
// together.
std::vector<std::vector<FolderTensor>> SplitCheckpoint(const std::vector<FolderTensor>& tensors) {
  std::vector<TensorName> names;
  for (const FolderTensor& tensor : tensors) {
    names.push_back({tensor.name, {kStateKindCount, BoxElements(Box{{}, tensor.shape})}});
  }
  std::vector<std::vector<FolderTensor>> split;
  for (const std::vector<size_t>& file : SplitOverFiles(names, ExportType::kF32, kFileBytes)) {
    split.emplace_back();
    for (const size_t index : file) split.back().push_back(tensors[index]);
  }
  return split;
}

ImportReport Inspect(const ModelFolder& source, const std::vector<FolderTensor>& tensors,
                     const proto::Model& model) {
  ImportReport report;
  for (const std::string& problem : ConfigContradictions(source.config(), model)) {
    report.problems.push_back(absl::StrCat("config.json: ", problem));
  }
  // Of another architecture no tensor fits, and naming them all helps nobody.
  if (SameArchitecture(source.config(), model)) {
    TensorCheck(source, tensors, model.tie_embeddings(), &report).Run();
  }
  return report;
}

}  // namespace

absl::StatusOr<ImportReport> InspectFolder(const std::string& folder, const Plan& plan) {
  PLANC_RETURN_IF_ERROR(ModelConfig(plan.job.model(), "float32").status());
  PLANC_ASSIGN_OR_RETURN(const ModelFolder source, ModelFolder::Open(folder));
  return Inspect(source, FolderTensors(ParametersOf(plan)), plan.job.model());
}

absl::StatusOr<ImportReport> ImportFolder(const std::string& folder, const Plan& plan,
                                          const std::map<std::string, std::string>& versions,
                                          const std::string& checkpoint, const FileSystem& files) {
  const proto::Model& model = plan.job.model();
  PLANC_RETURN_IF_ERROR(ModelConfig(model, "float32").status());
  PLANC_ASSIGN_OR_RETURN(const ModelFolder source, ModelFolder::Open(folder));
  Manifest manifest;
  manifest.job = plan.job;
  manifest.finite = true;  // ModelFolder::Read refuses all else
  manifest.mesh = plan.mesh;
  manifest.versions = versions;
  PLANC_ASSIGN_OR_RETURN(manifest.plan_hash, PlanHash(plan));
  manifest.parameters = ParametersOf(plan);
  const std::vector<FolderTensor> tensors = FolderTensors(manifest.parameters);

  ImportReport report = Inspect(source, tensors, model);
  if (!report.problems.empty()) return report;

  PLANC_ASSIGN_OR_RETURN(NewFolder target, NewFolder::Begin(files, checkpoint));
  CheckpointFiles writer(source, target, files, &manifest);
  int64_t number = 0;
  for (const std::vector<FolderTensor>& file : SplitCheckpoint(tensors)) {
    const std::string name = absl::StrFormat("import-%05d.safetensors", number++);
    PLANC_RETURN_IF_ERROR(writer.WriteFile(name, file));
  }
  for (const auto& [name, parameter] : manifest.parameters) {
    ++report.parameters;
    report.elements += BoxElements(Box{{}, parameter.shape});
  }
  PLANC_ASSIGN_OR_RETURN(const std::string text, ManifestText(manifest));
  PLANC_RETURN_IF_ERROR(target.Write(kManifestName, text));
  PLANC_RETURN_IF_ERROR(target.Commit());
  return report;
}

}  // namespace planc
