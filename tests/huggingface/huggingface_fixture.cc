#include "tests/huggingface/huggingface_fixture.h"

#include <bit>
#include <filesystem>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "planc/commands.h"
#include "planc/load_plan.h"
#include "runtime/checkpoint/save.h"
#include "runtime/checkpoint/saved_tensors.h"
#include "runtime/checkpoint/test_plan.h"
#include "runtime/checkpoint/test_state.h"
#include "tests/huggingface/folder_files.h"

namespace planc {

namespace fs = std::filesystem;

const std::vector<ModelCase>& ModelCases() {
  static const auto* const cases = new std::vector<ModelCase>{
      {"llama", "family: llama, kv_heads: 2, ffn_hidden: 48, rope_theta: 500000", 1},
      {"llama_tp", "family: llama, kv_heads: 2, ffn_hidden: 48", 2},
      {"qwen2", "family: qwen2, kv_heads: 2, ffn_hidden: 48, tie_embeddings: true", 1},
      {"qwen2_tp", "family: qwen2, kv_heads: 2, ffn_hidden: 48, norm_epsilon: 1e-6", 2},
      {"qwen3", "family: qwen3, kv_heads: 2, ffn_hidden: 48, head_dim: 16", 1},
      {"gpt2", "family: gpt2, ffn_hidden: 96, max_sequence: 24", 1},
      {"gpt2_tp", "family: gpt2, ffn_hidden: 128", 2},
      {"gpt2_untied", "family: gpt2, ffn_hidden: 96, tie_embeddings: false", 1},
  };
  return *cases;
}

const ModelCase& ModelCaseOf(const std::string& name) {
  for (const ModelCase& one : ModelCases()) {
    if (one.name == name) return one;
  }
  ADD_FAILURE() << "no case " << name;
  return ModelCases().front();
}

float WeightOf(const std::string& parameter, int64_t index) {
  uint64_t state = static_cast<uint64_t>(index) + 0x9e3779b97f4a7c15u;
  for (const char c : parameter) state = (state ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  state = (state ^ (state >> 29)) * 0xbf58476d1ce4e5b9u;
  return static_cast<float>(static_cast<int64_t>(state >> 32) - (int64_t{1} << 31)) * 0x1p-31f;
}

uint32_t BitsOf(float value) { return std::bit_cast<uint32_t>(value); }

std::map<std::string, std::vector<float>> ReadState(const std::string& checkpoint, StateKind kind) {
  const absl::StatusOr<Manifest> manifest = ReadManifest(checkpoint);
  EXPECT_TRUE(manifest.ok()) << manifest.status();
  std::map<std::string, std::vector<float>> values;
  SavedTensors saved(checkpoint, *manifest);
  for (const auto& [name, parameter] : manifest->parameters) {
    const Box whole{std::vector<int64_t>(parameter.shape.size(), 0), parameter.shape};
    values[name].resize(static_cast<size_t>(BoxElements(whole)));
    EXPECT_TRUE(saved.Read(name, kind, whole, values[name].data()).ok()) << name;
  }
  return values;
}

void HuggingFaceTest::SetUp() {
  const auto* const info = testing::UnitTest::GetInstance()->current_test_info();
  folder_ = absl::StrCat(testing::TempDir(), "/", info->name());
  fs::remove_all(folder_);
  fs::create_directories(folder_);
  std::string text;
  for (int i = 0; i < 4000; ++i) text += static_cast<char>('a' + i * i % 23);
  WriteText(Path("text.txt"), text);
}

std::string HuggingFaceTest::WriteJob(const ModelCase& one) const {
  const std::string path = Path(one.name + ".yaml");
  WriteText(path, absl::StrCat("job: ", one.name, "\nmodel: {layers: 2, hidden: 32, heads: 4, ",
                               "vocab: 259, ", one.model, "}\ncluster: {nodes: 1, gpus_per_node: ",
                               one.tp, ", device: host}\nmesh: {tp: ", one.tp,
                               "}\nbatch: {global: 2, micro: 1, sequence: 16}\n"
                               "precision: {compute: fp32}\noptimizer: {lr: 1e-3}\n"
                               "data: {train: [text.txt], validation: [text.txt], "
                               "format: bytes}\nrun: {steps: 1, directory: run_",
                               one.name, "}\n"));
  return path;
}

Plan HuggingFaceTest::Compile(const ModelCase& one) const {
  std::ostringstream err;
  LoadedPlan loaded;
  EXPECT_EQ(LoadPlan("test", WriteJob(one), {}, err, &loaded), kExitOk) << err.str();
  return loaded.plan;
}

std::string HuggingFaceTest::Save(const ModelCase& one) const {
  const Plan plan = Compile(one);
  const std::string directory = Path(one.name + "_checkpoints");
  const absl::Status saved = OnAllRanks(plan, [&](int64_t rank, Agreement& agreement) {
    TestShards shards(plan, rank);
    const std::vector<ShardView> views = shards.Views();
    for (const ShardView& view : views) {
      for (int64_t i = 0; i < view.count; ++i) {
        const ElementPlace place = PlaceOf(plan, view.unit, TpOf(plan, rank), view.begin + i);
        view.master[i] = view.m[i] = view.v[i] = 7;  // padding and moments are not exported
        if (place.parameter < 0) continue;
        const std::string& name = plan.params[static_cast<size_t>(place.parameter)].name;
        view.master[i] = WeightOf(ParameterName(name, view.layer), place.index);
      }
    }
    return SaveCheckpoint(plan, rank, views, 5, directory, agreement);
  });
  EXPECT_TRUE(saved.ok()) << saved;
  return directory + "/step-00000005";
}

int HuggingFaceTest::Checkpoint(const std::vector<std::string>& args) {
  std::ostringstream out;
  std::ostringstream err;
  const int code = RunCheckpoint(args, out, err);
  output_ = absl::StrReplaceAll(out.str() + err.str(), {{"\n  ", " "}});
  return code;
}

void HuggingFaceTest::Export(const ModelCase& one, const std::string& to,
                             const std::vector<std::string>& flags) {
  std::vector<std::string> args = {"export", Save(one), Path(to)};
  args.insert(args.end(), flags.begin(), flags.end());
  ASSERT_EQ(Checkpoint(args), kExitOk) << output_;
}

int HuggingFaceTest::Import(const ModelCase& one, const std::string& from, const std::string& to) {
  return Checkpoint({"import", Path(from), Path(to), "--job=" + WriteJob(one)});
}

}  // namespace planc
