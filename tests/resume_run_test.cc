// Resuming through the command line, as a user does: what planc check --resume tells before a run
// is what planc run then does, exit codes included.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "runtime/metrics/metrics_writer.h"
#include "tests/run_files.h"

namespace planc {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kJob[] = R"(job: resumed
model: {family: gpt2, layers: 2, hidden: 32, heads: 4, ffn_hidden: 64, vocab: 259, max_sequence: 32}
cluster: {nodes: 1, gpus_per_node: 2, device: host}
mesh: {dp_shard: 2}
batch: {global: 4, micro: 1, sequence: 32}
precision: {compute: fp32}
optimizer: {lr: 3e-3}
data: {train: [train.txt], format: bytes}
checkpoint: {directory: saved, every_steps: 2, resume: auto}
run: {steps: 6, directory: run, restarts: 0}
)";

// A job that was run for 4 of its 6 steps, with checkpoints after 2 and 4.
class ResumeRunTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = absl::StrCat(::testing::TempDir(), "/resume_run_",
                           ::testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    std::string text;
    for (int i = 0; i < 5000; ++i) text += static_cast<char>('a' + (i * i / 7) % 26);
    std::ofstream(folder_ + "/train.txt") << text;
    std::ofstream(folder_ + "/job.yaml") << kJob;
    ASSERT_EQ(Planc("run", "--steps=4"), 0) << output_;
  }
  void TearDown() override { fs::remove_all(folder_); }

  // Runs planc on the job; what it prints goes to output_, with line breaks as blanks. Returns its
  // exit code.
  int Planc(const std::string& command, const std::string& arguments) {
    const std::string log = folder_ + "/log";
    const int status = std::system(absl::StrCat("planc/planc ", command, " ", folder_, "/job.yaml ",
                                                arguments, " > ", log, " 2>&1")
                                       .c_str());
    const std::vector<std::string> words =
        absl::StrSplit(ReadText(log), absl::ByAnyChar(" \n"), absl::SkipEmpty());
    output_ = absl::StrJoin(words, " ");
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  std::vector<StepMetrics> Metrics() const {
    const auto rows = ReadMetrics(folder_ + "/run/metrics.jsonl");
    EXPECT_TRUE(rows.ok()) << rows.status();
    return rows.ok() ? *rows : std::vector<StepMetrics>();
  }

  std::string folder_;
  std::string output_;
};

TEST_F(ResumeRunTest, GoesOnAndSaysFromWhere) {
  EXPECT_EQ(Planc("check", "--resume=auto"), 0);
  EXPECT_THAT(output_, AllOf(HasSubstr("saved/step-00000004: works"),
                             HasSubstr("4 of 6 steps are done"), HasSubstr("bit for bit")));
  EXPECT_EQ(Planc("run", ""), 0) << output_;
  EXPECT_THAT(output_, HasSubstr("saved/step-00000004, the newest checkpoint of 2"));
  EXPECT_EQ(Metrics().size(), 6u);
}

TEST_F(ResumeRunTest, GoesOnOnAnotherMesh) {
  const std::string other =
      "--set mesh.dp_shard=1 --set mesh.pp=2 --set mesh.tp=2 "
      "--set cluster.gpus_per_node=4";
  EXPECT_EQ(Planc("check", "--resume=auto " + other), 0) << output_;
  const std::string notice = "saved on dp_shard 2 (2 ranks), loads on pp 2 tp 2 (4 ranks)";
  EXPECT_THAT(output_, HasSubstr(notice));
  EXPECT_EQ(Planc("run", other), 0) << output_;
  EXPECT_THAT(output_, HasSubstr(notice));
  EXPECT_EQ(Metrics().size(), 6u);
}

TEST_F(ResumeRunTest, ASilentChangeOfTheOptimizerIsRefused) {
  const std::string changed = "--set optimizer.betas=[0.9,0.98] --set optimizer.weight_decay=0";
  for (const std::string command : {"check", "run"}) {
    EXPECT_EQ(Planc(command, (command == "check" ? "--resume=auto " : "") + changed), 2);
    EXPECT_THAT(output_, AllOf(HasSubstr("optimizer.betas is [0.9, 0.95] in the checkpoint, "
                                         "[0.9, 0.98] in the job"),
                               HasSubstr("optimizer.weight_decay is 0.1 in the checkpoint, 0 in"),
                               HasSubstr("checkpoint.allow_changes: [optimizer.betas, "
                                         "optimizer.weight_decay]")));
  }
  EXPECT_EQ(Metrics().size(), 4u) << "nothing was trained";
  const std::string allowed = changed + " --set checkpoint.allow_changes=[optimizer]";
  EXPECT_EQ(Planc("check", "--resume=auto " + allowed), 0) << output_;
  EXPECT_EQ(Planc("run", allowed), 0) << output_;
  EXPECT_THAT(output_, HasSubstr("optimizer.weight_decay is 0.1 in the checkpoint, 0 in the job "
                                 "(allowed)"));
  EXPECT_EQ(Metrics().size(), 6u);
}

TEST_F(ResumeRunTest, ADamagedCheckpointIsPassedOver) {
  const std::string file = folder_ + "/saved/step-00000004/rank-00001.safetensors";
  fs::resize_file(file, fs::file_size(file) - 1);
  EXPECT_EQ(Planc("check", "--resume=auto"), 0);
  EXPECT_THAT(output_, AllOf(HasSubstr("PL0503"), HasSubstr("rank-00001.safetensors"),
                             HasSubstr("saved/step-00000002: works")));
  EXPECT_EQ(Planc("run", "--steps=3"), 0) << output_;
  EXPECT_THAT(output_, AllOf(HasSubstr("warning: passing over"),
                             HasSubstr("step-00000004/rank-00001.safetensors"),
                             HasSubstr("saved/step-00000002, the newest undamaged checkpoint")));
  EXPECT_EQ(Metrics().size(), 3u);
  // The checkpoint that was just written is not pruned in favour of the damaged newer one.
  EXPECT_EQ(Planc("run", "--set checkpoint.keep=1"), 0) << output_;
  EXPECT_THAT(output_, HasSubstr("saved/step-00000003, the newest undamaged checkpoint"));
  EXPECT_EQ(Metrics().size(), 6u);
}

TEST_F(ResumeRunTest, ANamedCheckpointIsTakenOrNothing) {
  EXPECT_EQ(Planc("run", absl::StrCat("--set checkpoint.resume=", folder_, "/saved/step-00000003")),
            2);
  EXPECT_THAT(output_, HasSubstr("there is no complete checkpoint here"));
  EXPECT_EQ(Planc("check", absl::StrCat("--resume=", folder_, "/saved/step-00000003")), 2);
  EXPECT_THAT(output_, HasSubstr("error[PL0502]"));
  EXPECT_EQ(Planc("run", absl::StrCat("--set checkpoint.resume=", folder_, "/saved/step-00000002")),
            0)
      << output_;
  EXPECT_THAT(output_, HasSubstr("step-00000002, which checkpoint.resume names"));
}

// A path of the command line starts from the current directory, in check and in run; both take a
// folder of checkpoints.
TEST_F(ResumeRunTest, CheckAndRunTakeTheSamePaths) {
  const std::string relative = fs::relative(folder_ + "/saved").string();
  // Below the folder of the job, which is not the current directory: neither finds it.
  for (const std::string command : {"check", "run"}) {
    EXPECT_EQ(Planc(command, "--resume=saved/step-00000002"), 2) << output_;
    EXPECT_THAT(output_, HasSubstr("error[PL0502]"));
  }
  EXPECT_EQ(Metrics().size(), 4u) << "nothing was trained or cut off";
  EXPECT_EQ(Planc("check", "--resume=" + relative), 0) << output_;
  EXPECT_THAT(output_, HasSubstr("step-00000004: works"));
  EXPECT_EQ(Planc("run", "--resume=" + relative), 0) << output_;
  EXPECT_THAT(output_, HasSubstr("saved/step-00000004, as the command line asks"));
  EXPECT_EQ(Metrics().size(), 6u);
}

TEST_F(ResumeRunTest, ADamagedNamedCheckpointLeavesTheRunAsItWas) {
  const std::string file = folder_ + "/saved/step-00000004/rank-00001.safetensors";
  fs::resize_file(file, fs::file_size(file) - 1);
  EXPECT_EQ(Planc("run", absl::StrCat("--resume=", folder_, "/saved/step-00000004")), 6) << output_;
  EXPECT_THAT(output_, HasSubstr("rank-00001.safetensors"));
  EXPECT_EQ(Metrics().size(), 4u);
  fs::remove(folder_ + "/saved/step-00000002/manifest.json");
  EXPECT_EQ(Planc("run", absl::StrCat("--resume=", folder_, "/saved")), 6) << output_;
  EXPECT_EQ(Metrics().size(), 4u);
}

}  // namespace
}  // namespace planc
