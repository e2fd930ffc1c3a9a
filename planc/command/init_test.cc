// planc init: every preset gives a job that passes check; a folder's config.json gives its model.
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/catalog/models.h"
#include "compiler/spec/load_job.h"
#include "gtest/gtest.h"
#include "planc/commands.h"
#include "planc/init_job.h"
#include "planc/load_plan.h"

namespace planc {
namespace {

namespace fs = std::filesystem;

struct Outcome {
  int code = 0;
  std::string out;
  std::string err;
};

using Command = int (*)(const std::vector<std::string>&, std::ostream&, std::ostream&);

Outcome Invoke(Command command, const std::vector<std::string>& args) {
  std::ostringstream out;
  std::ostringstream err;
  const int code = command(args, out, err);
  return {code, out.str(), err.str()};
}

class InitTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = absl::StrCat(testing::TempDir(), "init_",
                           testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string Path(const std::string& name) const { return folder_ + "/" + name; }

  std::string folder_;
};

TEST_F(InitTest, EveryPresetGivesAJobThatPassesCheck) {
  for (const ModelPreset& preset : ModelPresets()) {
    const std::string file = Path(preset.name + ".yaml");
    const std::vector<std::string> args = {"--preset=" + preset.name, "-o", file};
    Outcome init = Invoke(RunInit, args);
    if (init.code == kExitDoesNotFit) {
      // The number that is named suffices.
      const size_t at = init.err.find("model; ");
      ASSERT_NE(at, std::string::npos) << init.err;
      const int gpus = std::stoi(init.err.substr(at + 7));
      EXPECT_GT(gpus, 1);
      init = Invoke(RunInit, {args[0], args[1], args[2], absl::StrCat("--gpus=", gpus)});
    }
    ASSERT_EQ(init.code, kExitOk) << preset.name << init.err;
    const Outcome check = Invoke(RunCheck, {file});
    EXPECT_EQ(check.code, kExitOk) << preset.name << check.err;
    EXPECT_NE(check.err.find("0 errors, 1 warning"), std::string::npos) << check.err;
    std::ifstream stream(file);
    for (std::string line; std::getline(stream, line);) EXPECT_LE(line.size(), 100u) << line;
  }
}

TEST_F(InitTest, OnTheHostNothingIsInTheWayOfRunning) {
  const std::string file = Path("job.yaml");
  const Outcome init =
      Invoke(RunInit, {"--preset=gpt2-124m", "--device=host", "--gpus=2", "-o", file});
  ASSERT_EQ(init.code, kExitOk) << init.err;
  const Outcome check = Invoke(RunCheck, {file});
  EXPECT_EQ(check.code, kExitOk);
  EXPECT_EQ(check.err, "");
  EXPECT_EQ(LoadJob(file, {}).spec.job.mesh().dp_shard(), 2);
  // A file that exists stays.
  EXPECT_EQ(Invoke(RunInit, {"--preset=gpt2-355m", "--device=host", "-o", file}).code,
            kExitJobError);
  EXPECT_EQ(LoadJob(file, {}).spec.job.model().preset(), "gpt2-124m");
}

TEST_F(InitTest, AFoldersConfigGivesItsModel) {
  fs::create_directories(Path("my model"));
  std::ofstream(Path("my model/config.json"))
      << R"({"model_type": "llama", "vocab_size": 259, "hidden_size": 32, "intermediate_size": 64,
             "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2,
             "max_position_embeddings": 16, "rope_theta": 500000.0, "rms_norm_eps": 1e-06})";
  const std::string file = Path("job.yaml");
  const Outcome init = Invoke(RunInit, {"--from=" + Path("my model"), "--device=host", "-o", file});
  ASSERT_EQ(init.code, kExitOk) << init.err;
  const LoadResult job = LoadJob(file, {});
  ASSERT_TRUE(job.ok);
  const proto::Model& model = job.spec.job.model();
  EXPECT_EQ(job.spec.job.job(), "my-model");
  EXPECT_EQ(model.family(), proto::LLAMA);
  EXPECT_EQ(model.layers(), 4);
  EXPECT_EQ(model.kv_heads(), 2);
  EXPECT_EQ(model.head_dim(), 8);
  EXPECT_EQ(model.ffn_hidden(), 64);
  EXPECT_EQ(model.vocab(), 259);
  EXPECT_EQ(model.max_sequence(), 16);
  EXPECT_EQ(model.rope_theta(), 5e5);
  EXPECT_EQ(model.norm_epsilon(), 1e-6);
  EXPECT_FALSE(model.tie_embeddings());
  EXPECT_EQ(job.spec.job.checkpoint().resume(), "start");
}

TEST_F(InitTest, WhatCannotBeTrainedIsRefused) {
  std::ofstream(Path("config.json"))
      << R"({"model_type": "llama", "vocab_size": 259, "hidden_size": 32, "intermediate_size": 64,
             "num_hidden_layers": 4, "num_attention_heads": 4, "max_position_embeddings": 16,
             "rope_scaling": {"rope_type": "llama3", "factor": 8.0}})";
  const Outcome scaled = Invoke(RunInit, {"--from=" + folder_});
  EXPECT_EQ(scaled.code, kExitJobError);
  EXPECT_NE(scaled.err.find("rope_scaling"), std::string::npos) << scaled.err;
  std::ofstream(Path("config.json")) << R"({"model_type": "bert"})";
  EXPECT_NE(Invoke(RunInit, {"--from=" + folder_}).err.find("bert"), std::string::npos);
  EXPECT_NE(Invoke(RunInit, {"--from=" + folder_ + "/absent"}).err.find("config.json"),
            std::string::npos);
  EXPECT_EQ(Invoke(RunInit, {}).code, kExitJobError);
  EXPECT_EQ(Invoke(RunInit, {"--preset=llama3.1-8b", "--from=" + folder_}).code, kExitJobError);
  EXPECT_EQ(Invoke(RunInit, {"--preset=llama3.1-8b", "--gpus=12"}).code, kExitJobError);
  EXPECT_EQ(Invoke(RunInit, {"--preset=llama3.1-8b", "--device=h101"}).code, kExitJobError);
  EXPECT_NE(Invoke(RunInit, {"--preset=llama3.1-9b"}).err.find("llama3.1-8b"), std::string::npos);
}

TEST(JobNameTest, IsAFolderName) {
  EXPECT_EQ(JobNameFrom("Llama 3.1 (8B)"), "Llama-3.1--8B-");
  EXPECT_EQ(JobNameFrom("._x"), "x");
  EXPECT_EQ(JobNameFrom("///"), "job");
}

}  // namespace
}  // namespace planc
