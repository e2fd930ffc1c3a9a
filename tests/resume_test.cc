// Going on from a checkpoint: on the same mesh bit for bit; past damaged checkpoints; and not at
// all from those of another model, optimizer or format.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "runtime/checkpoint/checkpoint_directory.h"
#include "runtime/checkpoint/manifest.h"
#include "runtime/checkpoint/safetensors.h"
#include "tests/mesh_cases.h"
#include "tests/mesh_run.h"
#include "tests/saved_state.h"

namespace planc {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int kEvery = 3;
constexpr int kSteps = 6;

Plan PlanOf(const MeshCase& mesh_case, const std::string& resume,
            const std::vector<std::string>& more = {}) {
  std::vector<std::string> sets = {absl::StrCat("checkpoint.every_steps=", kEvery),
                                   "checkpoint.resume=" + resume};
  sets.insert(sets.end(), more.begin(), more.end());
  return CompileMeshCase(mesh_case, sets);
}

MeshCase CaseNamed(const std::string& name) {
  for (const MeshCase& mesh_case : AllMeshCases()) {
    if (mesh_case.name == name) return mesh_case;
  }
  ADD_FAILURE() << "no mesh case " << name;
  return {};
}

Tensors StateAt(const std::string& checkpoint) {
  absl::StatusOr<Tensors> state = ReadSavedState(checkpoint);
  EXPECT_TRUE(state.ok()) << state.status();
  return state.ok() ? *std::move(state) : Tensors{};
}

std::string FreshFolder(const std::string& name) {
  const std::string folder = absl::StrCat(::testing::TempDir(), "/resume_", name);
  fs::remove_all(folder);
  return folder;
}

class SameMeshTest : public ::testing::TestWithParam<const char*> {};

TEST_P(SameMeshTest, GoesOnBitForBit) {
  const MeshCase mesh_case = CaseNamed(GetParam());
  const std::string folder = FreshFolder(GetParam());
  const MeshRun whole = RunMesh(PlanOf(mesh_case, "never"), kSteps, folder + "/whole");
  ASSERT_TRUE(whole.errors.empty()) << whole.errors.front();
  const std::string middle = absl::StrCat(folder, "/whole/", CheckpointName(kEvery));
  const MeshRun rest = RunMesh(PlanOf(mesh_case, middle), kSteps, folder + "/rest");
  ASSERT_TRUE(rest.errors.empty()) << rest.errors.front();

  ASSERT_EQ(rest.first_step, kEvery);
  EXPECT_THAT(rest.notices, ::testing::ElementsAre(HasSubstr("which checkpoint.resume names")));
  for (int step = kEvery; step < kSteps; ++step) {
    EXPECT_EQ(rest.losses[step], whole.losses[step]) << "step " << step;
    EXPECT_EQ(rest.grad_norms[step], whole.grad_norms[step]) << "step " << step;
  }
  EXPECT_EQ(rest.eval_loss, whole.eval_loss);
  EXPECT_THAT(DifferingTensors(rest.weights, whole.weights), ::testing::IsEmpty());
  const std::string end = CheckpointName(kSteps);
  const Tensors state = StateAt(absl::StrCat(folder, "/whole/", end));
  EXPECT_THAT(DifferingTensors(StateAt(absl::StrCat(folder, "/rest/", end)), state),
              ::testing::IsEmpty());
  EXPECT_THAT(DifferingTensors(StateAt(middle), state), ::testing::SizeIs(state.size()))
      << "every tensor moves in three steps";
  fs::remove_all(folder);
}

INSTANTIATE_TEST_SUITE_P(Meshes, SameMeshTest,
                         ::testing::Values("llama_1", "llama_dr2", "llama_ds2_z1",
                                           "llama_ds4_z3_p2", "llama_dr2_ds2_z2",
                                           "llama_tp4_sp_selective", "llama_pp2_int2",
                                           "llama_uneven_pp3", "llama_pp2_ds2_z3_int2_tp2_sp_full",
                                           "llama_tied_pp2_ds2_z3", "qwen2_pp2_ds2_z1_tp2",
                                           "qwen3_tp2", "gpt2_pp2_dr2_ds2_z3_full", "gpt2_ds8_z3"),
                         [](const auto& info) { return std::string(info.param); });

// Two ranks, and two checkpoints of them: after 3 and after 6 steps.
class ResumeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = FreshFolder(::testing::UnitTest::GetInstance()->current_test_info()->name());
    const MeshRun run = RunMesh(PlanOf(mesh_case_, "never"), kSteps, folder_);
    ASSERT_TRUE(run.errors.empty()) << run.errors.front();
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string Saved(int step) const { return absl::StrCat(folder_, "/", CheckpointName(step)); }

  // Resumes without training on. `more` overrides the job.
  MeshRun Resume(const std::string& resume, const std::vector<std::string>& more = {}) {
    return RunMesh(PlanOf(mesh_case_, resume, more), 0, folder_);
  }
  // The error that every rank gets.
  std::string ErrorOf(const MeshRun& run) {
    EXPECT_EQ(run.errors.size(), 2u);
    return run.errors.empty() ? "" : run.errors.front();
  }
  static void FlipByte(const std::string& path, int64_t at) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(at);
    const char byte = static_cast<char>(file.get() ^ 1);
    file.seekp(at);
    file.put(byte);
  }
  static void FlipLastByte(const std::string& path) {
    FlipByte(path, static_cast<int64_t>(fs::file_size(path)) - 1);
  }
  // Where the first byte of a tensor lies in its file.
  static int64_t PlaceOf(const std::string& path, const std::string& key) {
    std::ifstream file(path, std::ios::binary);
    uint64_t header = 0;
    file.read(reinterpret_cast<char*>(&header), sizeof(header));
    const absl::StatusOr<SafetensorsFile> tensors = SafetensorsFile::Open(path);
    EXPECT_TRUE(tensors.ok()) << tensors.status();
    const char* first = nullptr;
    for (const auto& [name, tensor] : tensors->tensors()) {
      if (first == nullptr || tensor.data < first) first = tensor.data;
    }
    return static_cast<int64_t>(sizeof(header) + header) +
           (tensors->tensors().at(key).data - first);
  }
  static void Replace(const std::string& path, const std::string& from, const std::string& to) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    const std::string changed = absl::StrReplaceAll(text.str(), {{from, to}});
    EXPECT_NE(changed, text.str()) << "nothing to replace";
    std::ofstream(path) << changed;
  }

  const MeshCase mesh_case_ = CaseNamed("llama_ds2_z2");
  std::string folder_;
};

TEST_F(ResumeTest, AutoSaysWhichAndWhy) {
  MeshRun run = Resume("auto");
  EXPECT_TRUE(run.errors.empty());
  EXPECT_EQ(run.first_step, kSteps);
  ASSERT_EQ(run.notices.size(), 1u);
  EXPECT_THAT(run.notices[0], HasSubstr("step-00000006, the newest checkpoint of 2"));

  FlipLastByte(Saved(kSteps) + "/rank-00001.safetensors");
  run = Resume("auto");
  EXPECT_TRUE(run.errors.empty());
  EXPECT_EQ(run.first_step, kEvery);
  ASSERT_EQ(run.notices.size(), 2u);
  EXPECT_THAT(run.notices[0],
              AllOf(HasSubstr("warning: passing over"), HasSubstr("rank 1: loading "),
                    HasSubstr("step-00000006/rank-00001.safetensors: tensor "),
                    HasSubstr("does not have its checksum")));
  EXPECT_THAT(run.notices[1], HasSubstr("step-00000003, the newest undamaged checkpoint of 2"));

  FlipLastByte(Saved(kEvery) + "/rank-00000.safetensors");
  EXPECT_THAT(ErrorOf(Resume("auto")),
              AllOf(HasSubstr("DATA_LOSS"), HasSubstr("none of 2 checkpoints can be read")));
}

TEST_F(ResumeTest, AutoStartsAnewWithoutCheckpoints) {
  fs::remove_all(folder_);
  const MeshRun run = Resume("auto");
  EXPECT_TRUE(run.errors.empty());
  EXPECT_EQ(run.first_step, 0);
  EXPECT_THAT(run.notices, ::testing::IsEmpty());
}

TEST_F(ResumeTest, NamesWhatIsMissing) {
  fs::remove(Saved(kSteps) + "/rank-00001.safetensors");
  EXPECT_THAT(ErrorOf(Resume(Saved(kSteps))),
              AllOf(HasSubstr("DATA_LOSS"), HasSubstr("rank 1: loading master of model."),
                    HasSubstr("step-00000006/rank-00001.safetensors: No such file")));
  fs::resize_file(Saved(kEvery) + "/manifest.json", 1000);
  EXPECT_THAT(ErrorOf(Resume(Saved(kEvery))),
              AllOf(HasSubstr("DATA_LOSS"), HasSubstr("step-00000003/manifest.json: ")));
  fs::remove(Saved(kEvery) + "/manifest.json");
  EXPECT_THAT(ErrorOf(Resume(Saved(kEvery))),
              AllOf(HasSubstr("NOT_FOUND"), HasSubstr("step-00000003/manifest.json: ")));
}

// Together the ranks read all there is: one flipped bit in any tensor is found on any mesh.
TEST_F(ResumeTest, EveryTensorIsCheckedBySomeRank) {
  const absl::StatusOr<Manifest> manifest = ReadManifest(Saved(kSteps));
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  std::vector<Plan> plans;
  for (const char* const name : {"llama_ds2_z2", "llama_pp2_tp2_sp", "llama_dr2_ds2_z3"}) {
    plans.push_back(PlanOf(CaseNamed(name), Saved(kSteps)));
  }
  int flips = 0;
  for (const auto& [name, parameter] : manifest->parameters) {
    for (const std::vector<SavedTensor>& tensors : parameter.state) {
      for (const SavedTensor& tensor : tensors) {
        const std::string path = absl::StrCat(Saved(kSteps), "/", tensor.file);
        const int64_t at = PlaceOf(path, tensor.key);
        FlipByte(path, at);
        const MeshRun run = RunMesh(plans[static_cast<size_t>(flips++) % plans.size()], 0);
        ASSERT_FALSE(run.errors.empty()) << tensor.key << " is read by nobody";
        EXPECT_THAT(run.errors.front(),
                    AllOf(HasSubstr("rank "), HasSubstr(tensor.file + ": tensor "),
                          HasSubstr(tensor.key + " does not have")));
        FlipByte(path, at);
      }
    }
  }
  EXPECT_GT(flips, 3 * 39) << "some tensors are in two pieces";
  EXPECT_TRUE(RunMesh(plans[0], 0).errors.empty());
}

TEST_F(ResumeTest, TellsForeignFilesFromItsOwn) {
  // What the manifest does not list is not looked at.
  std::ofstream(Saved(kSteps) + "/rank-00007.safetensors") << "no shard of this checkpoint";
  EXPECT_EQ(Resume(Saved(kSteps)).first_step, kSteps);
  // The shard of another step has the same size, even the same header but for checksums.
  fs::copy_file(Saved(kEvery) + "/rank-00000.safetensors",
                Saved(kSteps) + "/rank-00000.safetensors", fs::copy_options::overwrite_existing);
  EXPECT_THAT(ErrorOf(Resume(Saved(kSteps))),
              AllOf(HasSubstr("DATA_LOSS"), HasSubstr("rank 0: loading "),
                    HasSubstr("step-00000006/rank-00000.safetensors: ")));
}

TEST_F(ResumeTest, RefusesAnotherFormatVersion) {
  Replace(Saved(kSteps) + "/manifest.json", "\"version\": 1", "\"version\": 2");
  // An older checkpoint is no way out: the steps since would be lost without need.
  for (const std::string& resume : {Saved(kSteps), std::string("auto")}) {
    EXPECT_THAT(ErrorOf(Resume(resume)),
                AllOf(HasSubstr("FAILED_PRECONDITION"),
                      HasSubstr("manifest.json: format version 2; this planc reads version 1")));
  }
}

TEST_F(ResumeTest, RefusesAnotherModel) {
  EXPECT_THAT(ErrorOf(Resume("auto", {"model.layers=2", "model.ffn_hidden=96"})),
              AllOf(HasSubstr("FAILED_PRECONDITION"), HasSubstr("is of another model"),
                    HasSubstr("model.layers is 4 in the checkpoint, 2 in the job"),
                    HasSubstr("model.ffn_hidden is 64 in the checkpoint, 96 in the job"),
                    HasSubstr("tensor model.layers.3."), HasSubstr("is not in the job")));
  // Shapes cannot be allowed.
  EXPECT_THAT(ErrorOf(Resume("auto", {"model.layers=2", "checkpoint.allow_changes=[model]"})),
              HasSubstr("tensors of other names or shapes cannot be loaded"));
}

TEST_F(ResumeTest, RefusesAnotherOptimizerUnlessItIsAllowed) {
  const std::vector<std::string> changed = {"optimizer.lr=2e-3", "optimizer.betas=[0.9, 0.98]",
                                            "lr_schedule.warmup_steps=1", "run.seed=8"};
  EXPECT_THAT(
      ErrorOf(Resume("auto", changed)),
      AllOf(HasSubstr("FAILED_PRECONDITION"), HasSubstr("was saved with other settings"),
            HasSubstr("optimizer.lr is 0.001 in the checkpoint, 0.002 in the job"),
            HasSubstr("optimizer.betas is [0.9, 0.95] in the checkpoint, [0.9, 0.98] in the job"),
            HasSubstr("lr_schedule.warmup_steps is 2 in the checkpoint, 1 in the job"),
            HasSubstr("`checkpoint.allow_changes: [optimizer.lr, optimizer.betas, "
                      "lr_schedule.warmup_steps]`")));
  std::vector<std::string> allowed = changed;
  allowed.push_back("checkpoint.allow_changes=[optimizer.lr, lr_schedule]");
  EXPECT_THAT(ErrorOf(Resume("auto", allowed)),
              AllOf(HasSubstr("`checkpoint.allow_changes: [optimizer.betas]`"),
                    ::testing::Not(HasSubstr("optimizer.lr is"))));
  allowed.back() = "checkpoint.allow_changes=[optimizer, lr_schedule]";
  const MeshRun run = Resume("auto", allowed);
  EXPECT_TRUE(run.errors.empty());
  EXPECT_EQ(run.first_step, kSteps);
  const std::string notices = absl::StrJoin(run.notices, "\n");
  EXPECT_THAT(notices, HasSubstr("optimizer.lr is 0.001 in the checkpoint, 0.002 in the job "
                                 "(allowed)"));
  EXPECT_THAT(notices, HasSubstr("run.seed is 7 in the checkpoint, 8 in the job"));
}

TEST_F(ResumeTest, SaysThatTheMeshIsAnother) {
  MeshRun same = RunMesh(PlanOf(CaseNamed("llama_ds2_z3"), "auto"), 0, folder_);
  EXPECT_TRUE(same.errors.empty());
  ASSERT_EQ(same.notices.size(), 2u);
  EXPECT_THAT(same.notices[1], ::testing::StartsWith("parallelism.zero was 2, is 3: losses"));
  // That run saved again, with its own job.
  MeshCase other = CaseNamed("llama_pp2_tp2_sp");
  const MeshRun run = RunMesh(PlanOf(other, "auto"), 0, folder_);
  EXPECT_TRUE(run.errors.empty());
  ASSERT_EQ(run.notices.size(), 2u);
  EXPECT_THAT(run.notices[1],
              AllOf(HasSubstr("saved on dp_shard 2 (2 ranks), loads on pp 2 tp 2 (4 ranks)"),
                    HasSubstr("parallelism.zero was 3, is 1"),
                    HasSubstr("losses are the same to rounding")));
}

}  // namespace
}  // namespace planc
