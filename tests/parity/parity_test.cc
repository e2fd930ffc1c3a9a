// Loss and gradients of one step, by planc and by an independent PyTorch program in float64
// (transformer.py): the fixtures hold its results for weights that planc trained and exported.
//
//   parity_test --write=DIR   writes the weights and tokens of all fixtures; make_fixtures.py then
//                             adds what PyTorch computes from them
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "compiler/diagnostics/render_text.h"
#include "compiler/pipeline.h"
#include "gtest/gtest.h"
#include "runtime/checkpoint/checkpoint_directory.h"
#include "runtime/checkpoint/file_system.h"
#include "runtime/checkpoint/huggingface/export.h"
#include "runtime/checkpoint/huggingface/import.h"
#include "tests/huggingface/folder_files.h"
#include "tests/mesh_cases.h"
#include "tests/mesh_run.h"

namespace planc {
namespace {

constexpr char kFixtures[] = "tests/parity/fixtures";
constexpr int kLayers = 4;
const char* const kFamilies[] = {"llama", "qwen2", "qwen3", "gpt2"};

// bf16 keeps 8 bits, so rounding to nearest is off by at most 2^-9. Between the loss and a weight
// of the first layer lie about 11 rounded tensors in each layer and direction. Their errors are
// independent and add up as a random walk; the factor 4 covers cancellation in residual sums and
// the tails.
const double kBf16Bound = 4 * std::sqrt(2.0 * 11 * kLayers) * std::ldexp(1.0, -9);
// The loss is a mean over 128 tokens of a logarithm, so the errors of single logits average out.
const double kBf16LossBound = std::sqrt(1.0 * 11 * kLayers) * std::ldexp(1.0, -9);

struct ParityCase {
  std::string family;
  std::string precision;
  std::string name;
  std::vector<std::string> mesh;
};

std::vector<ParityCase> ParityCases() {
  std::vector<ParityCase> cases;
  for (const std::string family : kFamilies) {
    for (const std::string precision : {"fp32", "bf16"}) {
      cases.push_back({family, precision, "one_rank", {}});
      cases.push_back({family,
                       precision,
                       "tp2_pp2_zero2",
                       {"mesh.tp=2", "mesh.pp=2", "mesh.dp_shard=2", "parallelism.zero=2",
                        "parallelism.sequence_parallel=true", "cluster.gpus_per_node=8"}});
    }
  }
  return cases;
}

// GQA and Qwen 3's wide heads; gradients are not clipped.
Plan CompileCase(const ParityCase& one, const std::vector<std::string>& more) {
  MeshCase mesh_case{one.name, one.family, one.mesh};
  std::vector<std::string> sets = {"optimizer.clip_norm=1e9",
                                   absl::StrCat("precision.compute=", one.precision)};
  if (one.family != "gpt2") sets.push_back("model.kv_heads=2");
  sets.insert(sets.end(), more.begin(), more.end());
  const LoadResult loaded = LoadMeshCase(mesh_case, sets);
  EXPECT_TRUE(loaded.ok) << RenderText(loaded.diagnostics, loaded.sources, false);
  absl::StatusOr<Plan> plan = CompilePlan(loaded.spec);
  EXPECT_TRUE(plan.ok()) << plan.status().ToString();
  return *std::move(plan);
}

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

// A key bias adds the same to all logits of a row: its true gradient is 0. What is left of it is
// measured against the gradient of the value bias beside it.
std::string ScaleName(const std::string& name) {
  return absl::StrReplaceAll(name,
                             {{"k_proj.bias", "v_proj.bias"}, {"attn.k.bias", "attn.v.bias"}});
}

class Parity : public testing::TestWithParam<ParityCase> {};

TEST_P(Parity, LossAndGradientsAgreeWithPyTorch) {
  const ParityCase& one = GetParam();
  const std::string fixture = absl::StrCat(kFixtures, "/", one.family);
  const std::string checkpoint =
      absl::StrCat(testing::TempDir(), "/", one.family, "_", one.precision, "_", one.name);
  std::filesystem::remove_all(checkpoint);
  const Plan plan = CompileCase(one, {absl::StrCat("checkpoint.resume=", checkpoint)});
  const auto imported = ImportFolder(fixture, plan, {}, checkpoint, HostFileSystem());
  ASSERT_TRUE(imported.ok()) << imported.status();
  ASSERT_TRUE(imported->problems.empty()) << imported->problems.front();

  const MeshRun run = RunMesh(plan, 1);
  ASSERT_TRUE(run.errors.empty()) << run.errors.front();
  const double loss = ReadJsonFile(absl::StrCat(fixture, "/loss.json"))["loss"];
  const Tensors theirs = ByPlancNames(ReadRawTensors(fixture + "/gradients.safetensors"));
  const Tensors& ours = run.first_gradients;

  const bool exact = one.precision == "fp32";
  const double loss_distance = std::abs(run.losses[0] - loss) / loss;
  EXPECT_LT(loss_distance, exact ? 1e-5 : kBf16LossBound);
  ASSERT_EQ(ours.size(), theirs.size());
  double worst = 0;
  for (const auto& [name, gradient] : ours) {
    ASSERT_EQ(theirs.count(name), 1) << name;
    ASSERT_EQ(theirs.at(name).size(), gradient.size()) << name;
    const double scale = Norm(theirs.at(ScaleName(name)));
    ASSERT_GT(scale, 0) << name;
    const double distance = Distance(gradient, theirs.at(name)) / scale;
    EXPECT_LT(distance, exact ? 1e-5 : kBf16Bound) << name;
    worst = std::max(worst, distance);
  }
  std::printf("%-6s %s %-14s loss off by %.1e, gradients by at most %.1e (%zu tensors)\n",
              one.family.c_str(), one.precision.c_str(), one.name.c_str(), loss_distance, worst,
              ours.size());
}

INSTANTIATE_TEST_SUITE_P(Models, Parity, testing::ValuesIn(ParityCases()), [](const auto& info) {
  return absl::StrCat(info.param.family, "_", info.param.precision, "_", info.param.name);
});

// Trains every family for a few steps, so that norms are not 1 and biases not 0, and exports it.
int WriteFixtures(const std::string& directory) {
  constexpr int kSteps = 5;
  for (const std::string family : kFamilies) {
    const std::string work = absl::StrCat(directory, "/", family, ".work");
    const std::string folder = absl::StrCat(directory, "/", family);
    const Plan plan = CompileCase({family, "fp32", "one_rank", {}}, {"optimizer.lr=2e-2"});
    const MeshRun run = RunMesh(plan, kSteps, work);
    if (!run.errors.empty()) {
      std::fprintf(stderr, "%s\n", run.errors.front().c_str());
      return 1;
    }
    std::filesystem::remove_all(folder);
    const auto exported =
        ExportFolder(absl::StrCat(work, "/", CheckpointName(kSteps)), folder, {}, HostFileSystem());
    if (!exported.ok()) {
      std::fprintf(stderr, "%s\n", exported.status().ToString().c_str());
      return 1;
    }
    nlohmann::json batch;
    for (int64_t sequence = 0; sequence < plan.job.batch().global(); ++sequence) {
      nlohmann::json tokens;
      nlohmann::json targets;
      for (int64_t position = 0; position < plan.job.batch().sequence(); ++position) {
        tokens.push_back(PatternToken(0, sequence, position));
        targets.push_back(PatternToken(0, sequence, position + 1));
      }
      batch["tokens"].push_back(tokens);
      batch["targets"].push_back(targets);
    }
    WriteText(folder + "/tokens.json", batch.dump() + "\n");
    std::filesystem::remove_all(work);
  }
  return 0;
}

}  // namespace
}  // namespace planc

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const std::string flag = argc == 2 ? argv[1] : "";
  if (absl::StartsWith(flag, "--write=")) {
    return planc::WriteFixtures(flag.substr(std::string("--write=").size()));
  }
  return RUN_ALL_TESTS();
}
