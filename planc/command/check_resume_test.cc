// planc check --resume: whether and how a job would go on from a checkpoint.
#include <algorithm>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "planc/commands.h"
#include "planc/fit.h"
#include "planc/load_plan.h"
#include "runtime/checkpoint/agreement.h"
#include "runtime/checkpoint/save.h"

namespace planc {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kJob[] = R"(job: resumed
model: {family: llama, layers: 2, hidden: 32, heads: 4, kv_heads: 2, ffn_hidden: 48, vocab: 256}
cluster: {nodes: 1, gpus_per_node: 1, device: host}
batch: {global: 2, micro: 1, sequence: 16}
precision: {compute: fp32}
optimizer: {lr: 1e-3}
data: {train: [text.txt], format: bytes}
checkpoint: {directory: saved}
run: {steps: 10}
)";

struct Outcome {
  int code;
  std::string out;
  std::string err;
};

class CheckResumeTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = absl::StrCat(testing::TempDir(), "check_resume_",
                           testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    std::ofstream(JobPath()) << kJob;
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string JobPath() const { return folder_ + "/job.yaml"; }
  std::string Saved(int step) const { return absl::StrCat(folder_, "/saved/step-0000000", step); }

  LoadedPlan Load() {
    LoadedPlan loaded;
    std::ostringstream err;
    EXPECT_EQ(LoadPlan("test", JobPath(), {}, err, &loaded), kExitOk) << err.str();
    return loaded;
  }

  // Saves zeros as the state of the job, which has one rank.
  void Save(int step) {
    const LoadedPlan loaded = Load();
    const Plan& plan = loaded.plan;
    std::deque<std::vector<float>> memory;
    std::vector<ShardView> views;
    for (size_t u = 0; u < plan.units.size(); ++u) {
      const Unit& unit = plan.units[u];
      for (int layer = 0; layer < (unit.per_layer ? 2 : 1); ++layer) {
        ShardView& view = views.emplace_back();
        view.unit = static_cast<int>(u);
        view.layer = unit.per_layer ? layer : -1;
        view.count = unit.elements;
        for (float** const state : {&view.master, &view.m, &view.v}) {
          *state = memory.emplace_back(static_cast<size_t>(unit.elements)).data();
        }
      }
    }
    SoleAgreement agreement;
    const absl::Status saved = SaveCheckpoint(plan, 0, views, step, folder_ + "/saved", agreement);
    ASSERT_TRUE(saved.ok()) << saved;
  }

  Outcome Check(const std::string& resume, std::vector<std::string> more = {}) {
    more.insert(more.begin(), {JobPath(), "--resume=" + resume});
    std::ostringstream out;
    std::ostringstream err;
    const int code = RunCheck(more, out, err);
    return {code, Unwrapped(out.str()), Unwrapped(err.str())};
  }
  // Lines broken at blanks are put together again.
  static std::string Unwrapped(std::string text) {
    const std::vector<std::string> words =
        absl::StrSplit(text, absl::ByAnyChar(" \n"), absl::SkipEmpty());
    return absl::StrJoin(words, " ");
  }
  nlohmann::json CheckJson(const std::string& resume, std::vector<std::string> sets) {
    std::vector<std::string> arguments = {"--format=json"};
    for (const std::string& set : sets) arguments.push_back("--set=" + set);
    return nlohmann::json::parse(Check(resume, arguments).out);  // JSON survives it
  }

  std::string folder_;
};

TEST_F(CheckResumeTest, TheSameJobGoesOnBitForBit) {
  Save(3);
  for (const std::string& path : {Saved(3), folder_ + "/saved", std::string("auto")}) {
    const Outcome outcome = Check(path);
    EXPECT_EQ(outcome.code, kExitOk) << outcome.err;
    EXPECT_EQ(outcome.err, "");
    EXPECT_THAT(outcome.out,
                AllOf(HasSubstr("resume from "), HasSubstr("step-00000003: works"),
                      HasSubstr("3 of 10 steps are done"), HasSubstr("goes on bit for bit")));
  }
  const auto json = CheckJson("auto", {});
  EXPECT_EQ(json["errors"], 0);
  EXPECT_EQ(json["resume"]["step"], 3);
  EXPECT_EQ(json["resume"]["same_layout"], true);
  EXPECT_EQ(json["resume"]["changes"].size(), 0u);
  EXPECT_EQ(json["resume"]["read_bytes"]["largest"], json["resume"]["read_bytes"]["saved"]);
  EXPECT_EQ(json["resume"]["memory_bytes"]["arenas"], RankBytes(FullestClass(Load().plan)));
}

TEST_F(CheckResumeTest, OtherMeshesReadWhatTheyNeed) {
  Save(3);
  const int64_t saved = CheckJson("auto", {})["resume"]["read_bytes"]["saved"];
  ASSERT_EQ(saved, static_cast<int64_t>(fs::file_size(Saved(3) + "/rank-00000.safetensors")));
  // Each half of a split tensor needs the whole of it, whose checksum is compared.
  const auto split = CheckJson("auto", {"cluster.gpus_per_node=2", "mesh.tp=2"})["resume"];
  EXPECT_EQ(split["same_layout"], false);
  EXPECT_EQ(split["read_bytes"]["largest"], saved);
  EXPECT_EQ(split["read_bytes"]["all_ranks"], 2 * saved);
  const auto copies = CheckJson("auto", {"cluster.gpus_per_node=2", "mesh.dp_replicate=2"});
  EXPECT_EQ(copies["resume"]["read_bytes"]["all_ranks"], 2 * saved);
  // Stages share no tensor; both read the header.
  const auto stages = CheckJson("auto", {"cluster.gpus_per_node=2", "mesh.pp=2"})["resume"];
  const int64_t largest = stages["read_bytes"]["largest"];
  const int64_t all = stages["read_bytes"]["all_ranks"];
  std::ifstream file(Saved(3) + "/rank-00000.safetensors", std::ios::binary);
  uint64_t header = 0;
  file.read(reinterpret_cast<char*>(&header), sizeof(header));
  EXPECT_EQ(all, saved + static_cast<int64_t>(header + sizeof(header)));
  EXPECT_LT(largest, all);
  EXPECT_GE(2 * largest, all);

  const Outcome outcome = Check("auto", {"--set=cluster.gpus_per_node=2", "--set=mesh.tp=2"});
  EXPECT_EQ(outcome.code, kExitOk);
  EXPECT_THAT(outcome.out, HasSubstr("saved on one rank, loads on tp 2 (2 ranks)"));
}

TEST_F(CheckResumeTest, RefusesAnotherOptimizer) {
  Save(3);
  const std::vector<std::string> changed = {"--set=optimizer.weight_decay=0.2",
                                            "--set=lr_schedule.warmup_steps=1"};
  Outcome outcome = Check("auto", changed);
  EXPECT_EQ(outcome.code, kExitJobError);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("error[PL0501]"), HasSubstr("0.1 in the checkpoint"),
                                 HasSubstr("(and 1 more)"), HasSubstr("warmup_steps is 0 in"),
                                 HasSubstr("checkpoint.allow_changes: [optimizer.weight_decay,")));
  EXPECT_THAT(outcome.out, testing::Not(HasSubstr("resume from")));
  // The caret stands under the value in the job file.
  std::ofstream(JobPath(), std::ios::app) << "lr_schedule:\n  warmup_steps: 1\n";
  outcome = Check("auto");
  EXPECT_THAT(outcome.err, HasSubstr("job.yaml:11:17"));

  outcome = Check("auto", {"--set=checkpoint.allow_changes=[lr_schedule]"});
  EXPECT_EQ(outcome.code, kExitOk) << outcome.err;
  EXPECT_THAT(outcome.out,
              HasSubstr("lr_schedule.warmup_steps is 0 in the checkpoint, 1 in the job (allowed)"));
}

TEST_F(CheckResumeTest, RefusesAnotherModelInEveryFormat) {
  Save(3);
  const auto json = CheckJson("auto", {"model.vocab=300", "checkpoint.allow_changes=[model]"});
  EXPECT_EQ(json["errors"], 1);
  EXPECT_TRUE(json["resume"].is_null());
  EXPECT_EQ(json["diagnostics"][0]["code"], "PL0501");
  EXPECT_THAT(json["diagnostics"][0]["message"].get<std::string>(),
              HasSubstr("is [256, 32] in the checkpoint, [300, 32] in the job"));
  const Outcome sarif = Check("auto", {"--format=sarif", "--set=model.vocab=300"});
  EXPECT_EQ(sarif.code, kExitJobError);
  EXPECT_EQ(nlohmann::json::parse(sarif.out)["runs"][0]["results"].size(), 1u);
}

TEST_F(CheckResumeTest, PassesOverDamage) {
  Save(3);
  Save(6);
  fs::resize_file(Saved(6) + "/rank-00000.safetensors", 5000);
  Outcome outcome = Check("auto");
  EXPECT_EQ(outcome.code, kExitOk);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("warning[PL0503]"),
                                 HasSubstr("step-00000006/rank-00000.safetensors: ")));
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("step-00000003: works"),
                                 HasSubstr("the newest that is whole of 2 checkpoints")));
  outcome = Check(Saved(6));
  EXPECT_EQ(outcome.code, kExitJobError);
  EXPECT_THAT(outcome.err, HasSubstr("error[PL0502]"));
  fs::remove(Saved(3) + "/rank-00000.safetensors");
  outcome = Check("auto");
  EXPECT_EQ(outcome.code, kExitJobError);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("warning[PL0503]"), HasSubstr("error[PL0502]")));
}

TEST_F(CheckResumeTest, SaysWhenThereIsNothing) {
  Outcome outcome = Check("auto");
  EXPECT_EQ(outcome.code, kExitJobError);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("error[PL0502]"), HasSubstr("the run starts anew")));
  outcome = Check(folder_ + "/none");
  EXPECT_EQ(outcome.code, kExitJobError);
  EXPECT_THAT(outcome.err, HasSubstr("none: there is no complete checkpoint here"));
  EXPECT_EQ(Check("auto", {JobPath()}).code, kExitJobError) << "two jobs";
  // A job with errors is about its errors only.
  outcome = Check("auto", {"--set=mesh.tp=3"});
  EXPECT_EQ(outcome.code, kExitJobError);
  EXPECT_THAT(outcome.err, testing::Not(HasSubstr("PL0502")));
}

}  // namespace
}  // namespace planc
