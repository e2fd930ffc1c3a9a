#include "planc/init_job.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "compiler/catalog/devices.h"
#include "compiler/catalog/models.h"
#include "compiler/catalog/parameter_count.h"
#include "compiler/diagnostics/render_text.h"
#include "compiler/pipeline.h"
#include "compiler/spec/load_job.h"
#include "planc/device_memory.h"
#include "planc/device_notice.h"
#include "planc/fit.h"
#include "planc/fit_search.h"

namespace planc {
namespace {

constexpr int64_t kGpusPerNode = 8;
constexpr int64_t kMostGpus = 16384;  // looked at to name a number that suffices
constexpr int64_t kStepTokens = int64_t{1} << 19;
constexpr int64_t kSequence = 8192;
// On CPUs a step should take seconds, not hours.
constexpr int64_t kHostSequence = 256;
constexpr int64_t kHostSequences = 8;
constexpr int64_t kNarrowVocab = 65536;
constexpr char kFile[] = "job.yaml";

proto::Model ResolvedModel(const proto::Model& model) {
  const ModelPreset* const preset = FindModelPreset(model.preset());
  return preset == nullptr ? model : preset->model;
}

// Peak learning rates of published runs, by parameters.
const char* LearningRate(int64_t parameters) {
  if (parameters < 1'000'000'000) return "6e-4";
  if (parameters < 20'000'000'000) return "3e-4";
  return parameters < 100'000'000'000 ? "1.5e-4" : "8e-5";
}

class Writer {
 public:
  Writer(const NewJob& request, int64_t gpus)
      : request_(request),
        model_(ResolvedModel(request.model)),
        host_(request.device == kRunnableDevice),
        per_node_(host_ ? gpus : std::min(gpus, kGpusPerNode)) {
    sequence_ = std::min(model_.max_sequence(), host_ ? kHostSequence : kSequence);
    settings_.nodes = gpus / per_node_;
    settings_.dp_shard = gpus;
    const int64_t sequences =
        host_ ? kHostSequences : std::max<int64_t>(1, kStepTokens / sequence_);
    settings_.global = (sequences + gpus - 1) / gpus * gpus;
  }

  // Nothing when no mesh fits.
  absl::StatusOr<std::optional<std::string>> Fit() {
    const std::string text = Text();
    const JobLoader load = [&text](const std::vector<std::string>& sets) {
      return LoadJobText(kFile, {{kFile, text}}, sets);
    };
    const LoadResult job = load({});
    if (!job.ok) {
      return absl::InternalError(absl::StrCat("the new job breaks a rule\n",
                                              RenderText(job.diagnostics, job.sources, false)));
    }
    const absl::StatusOr<Plan> plan = CompilePlan(job.spec);
    if (!plan.ok()) return plan.status();
    const int64_t bound = plan->job.cluster().memory();
    if (bound <= 0 || DeviceNeed(*plan, FullestClass(*plan)) <= bound) {
      return std::optional<std::string>(text);
    }
    const std::vector<FittingChange> changes =
        FindFittingChanges(*plan, load, /*more_nodes=*/false);
    if (changes.empty()) return std::optional<std::string>();
    settings_ = changes[0].settings;
    return std::optional<std::string>(Text());
  }

 private:
  std::string Text() const {
    std::string text;
    for (const std::string& line : request_.heading) absl::StrAppend(&text, "# ", line, "\n");
    absl::StrAppend(&text,
                    "# Lines marked CHANGE hold placeholders. `planc check FILE` checks the job, "
                    "`planc explain KEY`\n# says what a key means, `planc plan FILE` shows memory "
                    "and communication.\n");
    absl::StrAppend(&text, "job: ", request_.name, "\n", ModelText(), ClusterText(), MeshText());
    absl::StrAppend(
        &text, "batch:\n  global: ", settings_.global,
        "  # sequences of one optimizer step, over all ranks\n  micro: ", settings_.micro,
        "  # sequences that one rank computes at a time\n  sequence: ", sequence_,
        "  # tokens; the model is built for up to ", model_.max_sequence(), "\n");
    absl::StrAppend(&text, "precision: {compute: ", host_ ? "fp32" : "bf16",
                    "}  # master weights and moments are fp32\nrecompute: ", RecomputeText(),
                    "  # none, selective or full: less memory for more time\n");
    absl::StrAppend(&text, TrainingText(), DataText());
    return text;
  }

  std::string ModelText() const {
    const proto::Model& model = request_.model;
    if (model.has_preset()) {
      return absl::StrCat("model: {preset: ", model.preset(),
                          "}  # every size can be overridden beside it\n");
    }
    std::string text = "model:\n";
    for (const char* const key :
         {"family", "layers", "hidden", "heads", "kv_heads", "head_dim", "ffn_hidden", "vocab",
          "max_sequence", "tie_embeddings", "rope_theta", "norm_epsilon"}) {
      const auto* const field = model.GetDescriptor()->FindFieldByName(key);
      if (!model.GetReflection()->HasField(model, field)) continue;
      absl::StrAppend(&text, "  ", key, ": ", ValueText(model, *field), "\n");
    }
    return text;
  }

  static std::string ValueText(const proto::Model& model,
                               const google::protobuf::FieldDescriptor& field) {
    const auto& reflection = *model.GetReflection();
    switch (field.cpp_type()) {
      case google::protobuf::FieldDescriptor::CPPTYPE_BOOL:
        return reflection.GetBool(model, &field) ? "true" : "false";
      case google::protobuf::FieldDescriptor::CPPTYPE_DOUBLE:
        return absl::StrFormat("%.12g", reflection.GetDouble(model, &field));
      case google::protobuf::FieldDescriptor::CPPTYPE_ENUM:
        return absl::AsciiStrToLower(reflection.GetEnum(model, &field)->name());
      default:
        return absl::StrCat(reflection.GetInt64(model, &field));
    }
  }

  std::string ClusterText() const {
    return absl::StrCat(
        "cluster: {nodes: ", settings_.nodes, ", gpus_per_node: ", per_node_,
        ", device: ", request_.device, "}",
        host_ ? "  # processes on the CPUs of this machine" : "  # to plan: run needs device host",
        "\n");
  }

  std::string MeshText() const {
    std::vector<std::string> axes;
    for (const auto& [name, size] :
         {std::pair("pp", settings_.pp), std::pair("dp_replicate", settings_.dp_replicate),
          std::pair("dp_shard", settings_.dp_shard), std::pair("tp", settings_.tp)}) {
      if (size > 1) axes.push_back(absl::StrCat(name, ": ", size));
    }
    if (axes.empty()) return "";
    std::string text = absl::StrCat("mesh: {", absl::StrJoin(axes, ", "),
                                    "}  # their product is the number of ranks\n");
    std::vector<std::string> what;
    if (settings_.dp_shard > 1) what.push_back(absl::StrCat("zero: ", settings_.zero));
    if (settings_.sequence_parallel) what.push_back("sequence_parallel: true");
    if (what.empty()) return text;
    absl::StrAppend(&text, "parallelism: {", absl::StrJoin(what, ", "), "}",
                    settings_.dp_shard > 1 ? "  # zero: 1 moments, 2 gradients, 3 weights too" : "",
                    "\n");
    return text;
  }

  std::string RecomputeText() const {
    if (settings_.recompute == proto::RECOMPUTE_FULL) return "full";
    return settings_.recompute == proto::RECOMPUTE_SELECTIVE ? "selective" : "none";
  }

  std::string TrainingText() const {
    const int64_t steps = host_ ? 1000 : 100000;
    return absl::StrCat("optimizer: {lr: ", LearningRate(ParameterCount(model_)),
                        "}  # peak, after the warm-up\nlr_schedule: {warmup_steps: ", steps / 50,
                        ", decay: cosine, min_ratio: 0.1}\nrun: {steps: ", steps,
                        ", seed: 1234}\n");
  }

  std::string DataText() const {
    const bool narrow = model_.vocab() <= kNarrowVocab;
    return absl::StrCat(
        "data:\n  train: [path/to/train.bin]  # CHANGE: token files, relative to this file\n"
        "  # validation: [path/to/validation.bin]  # with run.eval_every_steps\n"
        "  format: tokens  # or bytes (any file), or megatron (a .bin/.idx pair)\n  token_bytes: ",
        narrow ? 2 : 4, "  # ", narrow ? "uint16" : "uint32", " tokens, all below ", model_.vocab(),
        "\ncheckpoint: {every_steps: ", host_ ? 100 : 500,
        ", keep: 3, async: ", host_ ? "false" : "true", ", resume: ", request_.resume, "}\n");
  }

  const NewJob& request_;
  const proto::Model model_;
  const bool host_;
  const int64_t per_node_;
  int64_t sequence_ = 1;
  MemorySettings settings_;
};

absl::Status CheckRequest(const NewJob& request) {
  if (FindDevice(request.device) == nullptr) {
    std::vector<std::string> names;
    for (const DeviceSpec& device : Devices()) names.push_back(device.name);
    return absl::InvalidArgumentError(absl::StrCat("there is no device ", request.device,
                                                   "; known: ", absl::StrJoin(names, " ")));
  }
  if (request.device != kRunnableDevice && request.gpus > kGpusPerNode &&
      request.gpus % kGpusPerNode != 0) {
    return absl::InvalidArgumentError(absl::StrCat(request.gpus, " GPUs do not fill nodes of ",
                                                   kGpusPerNode, ": a multiple of it is needed"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> NewJobText(const NewJob& request) {
  const absl::Status valid = CheckRequest(request);
  if (!valid.ok()) return valid;
  const absl::StatusOr<std::optional<std::string>> text = Writer(request, request.gpus).Fit();
  if (!text.ok()) return text.status();
  if (text->has_value()) return **text;
  const std::string problem = absl::StrCat("no mesh of ", request.gpus, " x ", request.device,
                                           " has the memory for this model");
  for (int64_t gpus = kGpusPerNode; gpus <= kMostGpus; gpus *= 2) {
    if (gpus <= request.gpus) continue;
    const absl::StatusOr<std::optional<std::string>> larger = Writer(request, gpus).Fit();
    if (!larger.ok()) return larger.status();
    if (larger->has_value()) {
      return absl::ResourceExhaustedError(absl::StrCat(problem, "; ", gpus, " have it"));
    }
  }
  return absl::ResourceExhaustedError(problem);
}

std::string JobNameFrom(const std::string& text) {
  std::string name;
  for (const unsigned char c : text.substr(0, 100)) {
    const bool plain = absl::ascii_isalnum(c) || c == '.' || c == '-' || c == '_';
    if (name.empty() && !absl::ascii_isalnum(c)) continue;
    name += plain ? static_cast<char>(c) : '-';
  }
  return name.empty() ? "job" : name;
}

}  // namespace planc
