#include "tests/parity/parity_case.h"

#include <cmath>
#include <cstdint>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tests/huggingface/folder_files.h"
#include "tests/mesh_cases.h"

namespace planc {
namespace {

std::vector<float> FloatsOf(const RawTensor& tensor) {
  std::vector<float> values(tensor.bytes.size() / sizeof(float));
  std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
  return values;
}

// Columns [begin, begin + count) of a [rows, columns] matrix, transposed.
std::vector<float> TransposedColumns(const std::vector<float>& from, int64_t columns, int64_t begin,
                                     int64_t count) {
  const int64_t rows = static_cast<int64_t>(from.size()) / columns;
  std::vector<float> to;
  for (int64_t c = begin; c < begin + count; ++c) {
    for (int64_t r = 0; r < rows; ++r) to.push_back(from[r * columns + c]);
  }
  return to;
}

// Tensors of a Hugging Face folder by planc's names and in planc's layout. GPT-2's linear weights
// are [in, out] there, and query, key and value are one tensor.
Tensors ByPlancNames(const RawTensors& raw) {
  Tensors tensors;
  for (const auto& [name, tensor] : raw) {
    const std::vector<float> values = FloatsOf(tensor);
    const int64_t columns = tensor.shape.back();
    const bool fused = absl::StrContains(name, ".c_attn.");
    if (!fused && !absl::StrContains(name, ".c_")) {
      tensors[name] = values;
    } else if (!fused) {
      tensors[name] =
          tensor.shape.size() == 1 ? values : TransposedColumns(values, columns, 0, columns);
    } else {
      for (int part = 0; part < 3; ++part) {
        const std::string own = absl::StrReplaceAll(
            name, {{".c_attn.", absl::StrCat(".c_attn.", std::string(1, "qkv"[part]), ".")}});
        const int64_t size = columns / 3;
        tensors[own] = tensor.shape.size() == 1
                           ? std::vector<float>(values.begin() + part * size,
                                                values.begin() + (part + 1) * size)
                           : TransposedColumns(values, columns, part * size, size);
      }
    }
  }
  return tensors;
}

std::vector<ParityCase> CasesNamed(const std::string& name) {
  std::vector<ParityCase> cases;
  for (const ParityCase& one : ParityCases()) {
    if (one.name == name) cases.push_back(one);
  }
  return cases;
}

}  // namespace

std::vector<std::string> ParityFamilies() { return {"llama", "qwen2", "qwen3", "gpt2"}; }

std::vector<ParityCase> ParityCases() {
  const std::vector<std::string> mesh = {"mesh.tp=2",
                                         "mesh.pp=2",
                                         "mesh.dp_shard=2",
                                         "parallelism.zero=2",
                                         "parallelism.sequence_parallel=true",
                                         "cluster.gpus_per_node=8"};
  const auto largest = host::DetectInstructionSet();
  std::vector<ParityCase> cases;
  for (const std::string& family : ParityFamilies()) {
    for (const std::string precision : {"fp32", "bf16"}) {
      for (const host::InstructionSet set :
           host::InstructionSetsUpTo(largest.value_or(host::InstructionSet::kAvx2))) {
        // What is computed in fp32 has the same bits on all sets.
        if (precision == "fp32" && set != host::InstructionSet::kAvx2) continue;
        const std::string name = host::InstructionSetName(set);
        cases.push_back({family, precision, "one_rank_" + name, {}, set});
        cases.push_back({family, precision, "tp2_pp2_zero2_" + name, mesh, set});
      }
    }
  }
  return cases;
}

std::vector<ParityCase> OneRankCases() { return CasesNamed("one_rank_avx2"); }
std::vector<ParityCase> MeshParityCases() { return CasesNamed("tp2_pp2_zero2_avx2"); }

std::string ParityCaseName(const ParityCase& one) {
  return absl::StrCat(one.family, "_", one.precision, "_", one.name);
}

void PrintTo(const ParityCase& one, std::ostream* out) { *out << ParityCaseName(one); }

Plan CompileParityCase(const ParityCase& one, const std::vector<std::string>& more) {
  MeshCase mesh_case{one.name, one.family, one.mesh};
  // Clipping changes the gradients of all families. Epsilon is above most of them, so that the
  // first step of AdamW is not the sign of the gradient alone. Steps are so large that rounding the
  // weights is small beside them.
  const ParityOptimizer optimizer;
  std::vector<std::string> sets = {absl::StrCat("optimizer.clip_norm=", optimizer.clip_norm),
                                   absl::StrCat("optimizer.epsilon=", optimizer.epsilon),
                                   absl::StrCat("optimizer.lr=", optimizer.lr),
                                   absl::StrCat("optimizer.weight_decay=", optimizer.weight_decay),
                                   "lr_schedule.warmup_steps=0",
                                   "lr_schedule.decay=constant",
                                   absl::StrCat("precision.compute=", one.precision)};
  if (one.family != "gpt2") sets.push_back("model.kv_heads=2");
  sets.insert(sets.end(), more.begin(), more.end());
  return CompileMeshCase(mesh_case, sets);
}

std::string FixtureFolder(const std::string& family) {
  return absl::StrCat("tests/parity/fixtures/", family);
}

ParityReference ReadParityReference(const std::string& family) {
  const std::string folder = FixtureFolder(family);
  const nlohmann::json json = ReadJsonFile(folder + "/loss.json");
  ParityReference reference;
  reference.losses = json["losses"].get<std::vector<double>>();
  reference.logit_deviation = json["logit_deviation"];
  reference.update_norm = json["update_norm"];
  reference.update_along_weights = json["update_along_weights"];
  reference.without = json["without"].get<std::map<std::string, std::vector<double>>>();
  reference.weights = ByPlancNames(ReadRawTensors(folder + "/model.safetensors"));
  reference.gradients = ByPlancNames(ReadRawTensors(folder + "/gradients.safetensors"));
  double squares = 0;
  for (const auto& [name, gradient] : reference.gradients) squares += std::pow(Norm(gradient), 2);
  reference.grad_norm = std::sqrt(squares);
  return reference;
}

double Norm(const std::vector<float>& values) {
  double sum = 0;
  for (float value : values) sum += double{value} * value;
  return std::sqrt(sum);
}

double Distance(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += (double{a[i]} - b[i]) * (double{a[i]} - b[i]);
  return std::sqrt(sum);
}

}  // namespace planc
