// A run as a chain of checkpoints, through the command line: ways back, restarts of launchers, the
// weights that a run begins with, and schedules of runs that are made longer or shorter.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "runtime/checkpoint/manifest.h"
#include "runtime/checkpoint/run_record.h"
#include "runtime/metrics/metrics_writer.h"
#include "tests/run_files.h"
#include "tests/started_run.h"

namespace planc {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kJob[] = R"(job: chain
model: {family: gpt2, layers: 1, hidden: 32, heads: 4, ffn_hidden: 64, vocab: 259, max_sequence: 32}
cluster: {nodes: 1, gpus_per_node: 1, device: host}
batch: {global: 4, micro: 1, sequence: 32}
precision: {compute: fp32}
optimizer: {lr: 3e-3}
data: {train: [train.txt], format: bytes}
checkpoint: {directory: saved, every_steps: 2, keep: 20}
run: {steps: 10, directory: run, restarts: 0}
)";
constexpr char kOtherRate[] =
    " --set optimizer.lr=1e-3 --set checkpoint.allow_changes=[optimizer.lr]";

class RunChainTest : public ::testing::Test {
 protected:
  RunChainTest() {
    const std::string name = ::testing::UnitTest::GetInstance()->current_test_info()->name();
    folder_ = fs::path(absl::StrCat(::testing::TempDir(), "/run_chain_", name))
                  .lexically_normal()
                  .string();
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    std::ofstream(folder_ + "/train.txt") << LearnableText(5000);
    std::ofstream(folder_ + "/job.yaml") << kJob;
  }
  ~RunChainTest() override { fs::remove_all(folder_); }

  // Runs planc; what it prints goes to output_, with line breaks as blanks. Returns its exit code.
  int Planc(const std::string& arguments, const std::string& environment = "") {
    const std::string log = folder_ + "/log";
    const int status = std::system(
        absl::StrCat(environment, " planc/planc ", arguments, " > ", log, " 2>&1").c_str());
    const std::vector<std::string> words =
        absl::StrSplit(ReadText(log), absl::ByAnyChar(" \n"), absl::SkipEmpty());
    output_ = absl::StrJoin(words, " ");
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  int Run(const std::string& arguments = "", const std::string& environment = "") {
    return Planc("run " + folder_ + "/job.yaml " + arguments, environment);
  }

  std::string At(int64_t step) const {
    return absl::StrCat(folder_, "/saved/step-", step < 10 ? "0000000" : "000000", step);
  }
  Manifest Read(const std::string& checkpoint) const {
    const auto manifest = ReadManifest(checkpoint);
    EXPECT_TRUE(manifest.ok()) << manifest.status();
    return manifest.value_or(Manifest());
  }
  RunRecord Record() const {
    const auto record = ReadRunRecord(folder_ + "/run");
    EXPECT_TRUE(record.ok()) << record.status();
    return record.value_or(RunRecord());
  }
  std::vector<StepMetrics> Metrics(const std::string& name = "metrics.jsonl") const {
    return ReadMetrics(folder_ + "/run/" + name).value_or(std::vector<StepMetrics>());
  }
  std::string Superseded(int count) const {
    return absl::StrCat(folder_, "/saved/run-", Record().id, "/superseded-", count);
  }

  std::string folder_;
  std::string output_;
};

TEST_F(RunChainTest, EachCheckpointNamesItsParentAndTheRunItsTip) {
  ASSERT_EQ(Run("--steps=4"), 0) << output_;
  EXPECT_FALSE(Read(At(2)).parent.has_value()) << "it goes on from no checkpoint";
  ASSERT_EQ(Run("--steps=8"), 0) << output_;
  for (const int64_t step : {4, 6, 8}) {
    const auto parent = AsParent(At(step - 2));
    ASSERT_TRUE(parent.ok()) << parent.status();
    const Manifest manifest = Read(At(step));
    ASSERT_TRUE(manifest.parent.has_value()) << step;
    EXPECT_EQ(manifest.parent->run, Record().id);
    EXPECT_EQ(manifest.parent->step, step - 2);
    EXPECT_EQ(manifest.parent->checksum, parent->checksum);
  }
  ASSERT_TRUE(Record().tip.has_value());
  EXPECT_EQ(Record().tip->step, 8);
  EXPECT_EQ(Record().tip->checksum, AsParent(At(8))->checksum);
}

TEST_F(RunChainTest, ARollbackIsFollowed) {
  ASSERT_EQ(Run(), 0) << output_;
  ASSERT_EQ(Run(absl::StrCat("--steps=7 --resume=", At(4), kOtherRate)), 0) << output_;
  EXPECT_THAT(output_, AllOf(HasSubstr("the run goes back to step 4; what it saved after that, up "
                                       "to step 10, is set aside in"),
                             HasSubstr("resumed after step 4")));
  for (const char* const name : {"step-00000006", "step-00000008", "step-00000010"}) {
    const Manifest manifest = Read(Superseded(1) + "/" + name);
    EXPECT_EQ(manifest.run.branch, 0);
    EXPECT_EQ(manifest.job.optimizer().lr(), 3e-3) << "the way that was left";
  }
  EXPECT_EQ(Read(At(7)).run.branch, 1);
  EXPECT_EQ(Read(At(7)).parent->step, 6);
  EXPECT_EQ(Read(At(6)).parent->step, 4);

  ASSERT_EQ(Planc("check " + folder_ + "/job.yaml --resume=auto" + kOtherRate), 0) << output_;
  EXPECT_THAT(output_, HasSubstr("step-00000007"));
  ASSERT_EQ(Run(absl::StrCat("--steps=8", kOtherRate)), 0) << output_;
  EXPECT_THAT(output_, HasSubstr("resumed after step 7"));
  ASSERT_EQ(Planc("status " + folder_ + "/run"), 0);
  EXPECT_THAT(output_, HasSubstr("went back to step 4"));
  ASSERT_EQ(Planc("checkpoint ls " + folder_ + "/saved"), 0);
  EXPECT_THAT(output_, HasSubstr("superseded-1: steps 6, 8, 10"));
  const std::vector<StepMetrics> rows = Metrics();
  ASSERT_EQ(rows.size(), 8u);
  for (size_t i = 0; i < rows.size(); ++i) EXPECT_EQ(rows[i].step, static_cast<int64_t>(i) + 1);
  EXPECT_EQ(Metrics("metrics-superseded.jsonl").size(), 6u) << "steps 5 to 10 of the first way";
}

// Back to what a way back had left behind: the chain is that of the one written last.
TEST_F(RunChainTest, AWayThatWasLeftCanBeTakenAgain) {
  ASSERT_EQ(Run(), 0) << output_;
  ASSERT_EQ(Run(absl::StrCat("--steps=7 --resume=", At(4), kOtherRate)), 0) << output_;
  const std::string left = Superseded(1) + "/step-00000008";
  ASSERT_EQ(Run(absl::StrCat("--steps=9 --resume=", left)), 0) << output_;
  EXPECT_THAT(output_, HasSubstr("resumed after step 8"));
  EXPECT_TRUE(fs::exists(Superseded(2) + "/step-00000007")) << output_;
  EXPECT_EQ(Read(At(9)).parent->checksum, AsParent(left)->checksum);
  ASSERT_EQ(Run(), 0) << output_;
  EXPECT_THAT(output_, HasSubstr("resumed after step 9"));
}

TEST_F(RunChainTest, ARefusedWayBackLeavesTheChain) {
  ASSERT_EQ(Run("--steps=6"), 0) << output_;
  EXPECT_EQ(Run("--set model.layers=2 --resume=" + At(4)), 2) << output_;
  // Damage that only loading finds: the way back is recorded, and not gone.
  fs::resize_file(At(4) + "/rank-00000.safetensors", 5000);
  EXPECT_EQ(Run("--resume=" + At(4)), 6) << output_;
  EXPECT_TRUE(fs::exists(At(6)));
  ASSERT_EQ(Run("--steps=8"), 0) << output_;
  EXPECT_THAT(output_, HasSubstr("resumed after step 6"));
  EXPECT_TRUE(Record().ways_back.empty());
}

// A launcher's restart goes on from what the run wrote, also when the checkpoint that the first
// start named was pruned since.
TEST_F(RunChainTest, RestartsOfLaunchersGoOnFromWhatTheRunWrote) {
  const int port = 20000 + getpid() % 10000;
  const std::string torchrun = absl::StrCat(
      "RANK=0 WORLD_SIZE=1 LOCAL_RANK=0 LOCAL_WORLD_SIZE=1 MASTER_ADDR=127.0.0.1 MASTER_PORT=",
      port, " TORCHELASTIC_RUN_ID=a TORCHELASTIC_RESTART_COUNT=");
  const std::string slurm = absl::StrCat(
      "SLURM_PROCID=0 SLURM_LOCALID=0 SLURM_NODEID=0 SLURM_JOB_ID=7 SLURM_STEP_NODELIST=localhost "
      "SLURM_STEP_TASKS_PER_NODE=1 SLURM_STEP_NUM_TASKS=1 SLURM_NTASKS=1 MASTER_PORT=",
      port, " SLURM_STEP_ID=");
  // Environment of the first start, and of the restart.
  const std::vector<std::pair<std::string, std::string>> launchers = {
      {torchrun + "0", torchrun + "1"},
      {slurm + "0 SLURM_RESTART_COUNT=0", slurm + "1 SLURM_RESTART_COUNT=1"}};
  const std::string job = folder_ + "/job.yaml";
  ASSERT_EQ(Planc(absl::StrCat("run ", job, " --steps=4 --set run.directory=", folder_, "/other",
                               " --set checkpoint.directory=", folder_, "/from")),
            0)
      << output_;
  const std::string from = folder_ + "/from/step-00000002";
  for (const auto& [first, again] : launchers) {
    for (const std::string flag : {"--resume=never", "--resume=auto", "PATH"}) {
      SCOPED_TRACE(first + flag);
      fs::remove_all(folder_ + "/run");
      fs::remove_all(folder_ + "/saved");
      if (flag == "PATH") {
        fs::remove_all(folder_ + "/pruned");
        fs::copy(from, folder_ + "/pruned", fs::copy_options::recursive);
      }
      const std::string resume = flag == "PATH" ? "--resume=" + folder_ + "/pruned" : flag;
      ASSERT_EQ(Run("--steps=5 " + resume, first), 0) << output_;
      fs::remove_all(folder_ + "/pruned");
      ASSERT_EQ(Run("--steps=7 " + resume, again), 0) << output_;
      EXPECT_THAT(output_, HasSubstr("resumed after step 5"));
      // It is no restart that a person makes.
      EXPECT_EQ(Run("--steps=8 --resume=never"), 2) << output_;
    }
  }
}

TEST_F(RunChainTest, LocalRestartsGoOnFromWhatTheRunWrote) {
  StartedRun run(folder_ + "/local", 2, "dp_shard: 2", "steps: 1000000, restarts: 2",
                 "lr_schedule: {decay: constant}");
  ASSERT_EQ(run.Run({"run", "job.yaml", "--steps=4", "--set", "checkpoint.every_steps=2"}), 0);
  // Begun with never, and from a checkpoint that is then pruned.
  const std::vector<std::string> begun = {"--resume=never", "--resume=saved/step-00000002"};
  for (const std::string& resume : begun) {
    SCOPED_TRACE(resume);
    std::vector<std::string> arguments = {
        "run",   "job.yaml",         resume, "--set", "checkpoint.every_steps=2",
        "--set", "checkpoint.keep=1"};
    if (resume == begun[0]) arguments.push_back("--fresh");
    const std::string log = folder_ + "/local/planc.log";
    fs::remove(log);
    run.Start(arguments);
    ASSERT_TRUE(run.Await([&] { return run.StepsSaved() >= 20; })) << run.Output();
    const std::vector<pid_t> ranks = RanksOf(run.process());
    ASSERT_EQ(ranks.size(), 2u);
    kill(ranks[1], SIGKILL);
    const std::string resumed = "restart 1 of 2 from the checkpoint of step";
    ASSERT_TRUE(run.Await([&] {
      const std::string text = run.Output();
      const size_t at = text.find(resumed);
      return at != std::string::npos && text.find("resumed after step", at) != std::string::npos;
    })) << run.Output();
    kill(run.process(), SIGTERM);
    EXPECT_EQ(run.ExitCode(), 8) << run.Output();
    const std::string text = run.Output();
    const std::string marker = "resumed after step ";
    EXPECT_GE(std::atoll(text.c_str() + text.rfind(marker) + marker.size()), 20) << text;
    ASSERT_EQ(run.Run({"run", "job.yaml", "--fresh", "--steps=4", "--set",
                       "checkpoint.every_steps=2", "--resume=never"}),
              0);
  }
}

TEST_F(RunChainTest, InitialWeightsBeginARunThatGoesOnAsItself) {
  ASSERT_EQ(Run(absl::StrCat("--set run.directory=", folder_,
                             "/first --set checkpoint.directory=", folder_, "/from")),
            0)
      << output_;
  const std::string from = folder_ + "/from/step-00000010";
  const std::string initial = " --set checkpoint.initial=" + from;
  EXPECT_EQ(Planc("check --data " + folder_ + "/job.yaml" + initial), 0) << output_;
  EXPECT_EQ(Planc("check --data " + folder_ + "/job.yaml --set model.layers=2" + initial), 2);
  EXPECT_THAT(output_, HasSubstr("is not in the checkpoint"));
  EXPECT_EQ(Run("--set model.layers=2" + initial), 2) << output_;
  EXPECT_FALSE(fs::exists(folder_ + "/run/run.json")) << "nothing was begun";

  ASSERT_EQ(Run("--steps=3" + initial), 0) << output_;
  EXPECT_THAT(output_,
              AllOf(HasSubstr("begins at step 0"), HasSubstr("its weights are those of " + from)));
  EXPECT_EQ(Record().initial_weights, from);
  ASSERT_EQ(Metrics().size(), 3u);
  const double first_loss = ReadMetrics(folder_ + "/first/metrics.jsonl")->back().loss;
  EXPECT_NEAR(Metrics()[0].loss, first_loss, 0.5) << "of a model that was trained";
  EXPECT_EQ(Metrics()[0].lr, ReadMetrics(folder_ + "/first/metrics.jsonl")->front().lr);
  ASSERT_EQ(Run("--steps=5" + initial), 0) << output_;
  EXPECT_THAT(output_, HasSubstr("resumed after step 3"));
  // The same weights from a Hugging Face folder, on another mesh too, give the same first loss.
  const double loss = Metrics()[0].loss;
  ASSERT_EQ(Planc(absl::StrCat("checkpoint export ", from, " ", folder_, "/hf")), 0) << output_;
  for (const std::string mesh : {"", " --set cluster.gpus_per_node=2 --set mesh.tp=2",
                                 " --set cluster.gpus_per_node=2 --set mesh.dp_shard=2"}) {
    SCOPED_TRACE(mesh);
    ASSERT_EQ(
        Run(absl::StrCat("--fresh --steps=1 --set checkpoint.initial=", folder_, "/hf", mesh)), 0)
        << output_;
    EXPECT_NEAR(Metrics()[0].loss, loss, 1e-5);
  }
  ASSERT_EQ(Run("--fresh --steps=1 --set checkpoint.initial=" + folder_ + "/nowhere"), 2);
  EXPECT_THAT(output_,
              HasSubstr("neither a complete checkpoint nor a Hugging Face folder is here"));
}

TEST_F(RunChainTest, MoreStepsKeepTheRateOrAreRefused) {
  ASSERT_EQ(Run(), 0) << output_;
  EXPECT_EQ(Run("--set run.steps=20"), 2);
  EXPECT_THAT(output_,
              AllOf(HasSubstr("lr_schedule.decay_steps is 10 in the checkpoint, 20 in the job"),
                    HasSubstr("the learning rate of step 11 is 0.00165, and 0.0003 with the "
                              "checkpoint's job"),
                    HasSubstr("`lr_schedule.decay_steps: 10` keeps the rates as they were")));
  EXPECT_EQ(Planc("check --resume=auto --set run.steps=20 " + folder_ + "/job.yaml"), 2);
  ASSERT_EQ(Run("--set run.steps=12 --set lr_schedule.decay_steps=10"), 0) << output_;
  EXPECT_EQ(Metrics().back().lr, 3e-3 * 0.1);
  ASSERT_EQ(Run("--set run.steps=20 --set checkpoint.allow_changes=[run.steps]"), 0) << output_;
  EXPECT_THAT(output_, HasSubstr("the learning rate of step 13 is"));
}

TEST_F(RunChainTest, FewerStepsThanAreDoneAreNothingToDoInWords) {
  ASSERT_EQ(Run("--steps=8"), 0) << output_;
  ASSERT_EQ(Run("--set run.steps=5"), 0) << output_;
  EXPECT_THAT(output_, HasSubstr("nothing to do: 5 steps are asked for, and 8 are done"));
  EXPECT_EQ(Run("--steps=4 --resume=" + At(6)), 2);
  EXPECT_THAT(output_, HasSubstr("is of step 6, and 4 steps are asked for"));
  EXPECT_EQ(
      Run(absl::StrCat("--set run.directory=", folder_, "/new --set run.steps=5 --resume=", At(8))),
      2);
  EXPECT_THAT(output_, HasSubstr("checkpoint.initial: " + At(8)));
}

// What cannot be seen is neither absent nor damaged. A link to itself cannot be, by root neither.
TEST_F(RunChainTest, CannotTellIsNotAbsent) {
  ASSERT_EQ(Run("--steps=6"), 0) << output_;
  const std::string why = "cannot be read: Too many levels of symbolic links";
  const auto expect_refused = [&](const std::string& path) {
    SCOPED_TRACE(path);
    fs::rename(path, folder_ + "/kept");
    fs::create_symlink(path, path);
    EXPECT_EQ(Run(), 2) << output_;
    EXPECT_THAT(output_, AllOf(HasSubstr(why), Not(HasSubstr("resumed after step 4"))));
    EXPECT_EQ(Planc("check --resume=auto " + folder_ + "/job.yaml"), 2);
    EXPECT_THAT(output_, HasSubstr(why));
    EXPECT_NE(Planc("checkpoint verify " + folder_ + "/saved"), 0);
    EXPECT_THAT(output_, AllOf(HasSubstr(why), Not(HasSubstr("damaged"))));
    fs::remove(path);
    fs::rename(folder_ + "/kept", path);
  };
  expect_refused(At(6) + "/rank-00000.safetensors");
  expect_refused(At(6) + "/manifest.json");
  expect_refused(At(6));
  ASSERT_EQ(Run(), 0) << output_;
  EXPECT_THAT(output_, HasSubstr("resumed after step 6"));
}

// With keep: 1 the newest, from which no step was done, and the one before it.
TEST_F(RunChainTest, AProvenCheckpointIsNotPruned) {
  ASSERT_EQ(Run("--set checkpoint.keep=1"), 0) << output_;
  EXPECT_TRUE(fs::exists(At(10)));
  EXPECT_TRUE(fs::exists(At(8)));
  EXPECT_FALSE(fs::exists(At(6)));
}

// What is read again decides nothing: a rank that is started again refuses another plan.
TEST_F(RunChainTest, ARestartedRankRefusesAnotherPlan) {
  StartedRun run(folder_ + "/local", 2, "dp_shard: 2", "steps: 1000000, restarts: 2",
                 "lr_schedule: {decay: constant}");
  ASSERT_EQ(run.Run({"plan", "job.yaml", "--set", "optimizer.lr=1", "-o", "other.plan"}), 0);
  run.Start({"run", "job.yaml", "--set", "checkpoint.every_steps=2"});
  ASSERT_TRUE(run.Await([&] { return run.StepsSaved() >= 4; })) << run.Output();
  fs::rename(folder_ + "/local/other.plan", folder_ + "/local/run/plan.plan");
  kill(RanksOf(run.process())[1], SIGKILL);
  EXPECT_EQ(run.ExitCode(), 2) << run.Output();
  EXPECT_THAT(run.Output(), HasSubstr("plan.plan was replaced while the run went on"));
  // The command itself goes on with its own plan.
  ASSERT_EQ(run.Run({"run", "job.yaml", "--steps=4"}), 0) << run.Output();
}

}  // namespace
}  // namespace planc
