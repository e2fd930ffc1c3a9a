// Stops, kills and signals the ranks of real runs, and looks at how the run ends.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "runtime/metrics/metrics_writer.h"
#include "tests/run_files.h"

namespace planc {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kRanks = 4;

bool Exists(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

class FaultTest : public ::testing::Test {
 protected:
  FaultTest() {
    const auto* const info = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = absl::StrCat(::testing::TempDir(), "/", info->name());
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    std::ofstream(folder_ + "/train.txt") << std::string(20000, 'a');
  }
  ~FaultTest() override {
    if (launcher_ < 0) return;
    kill(launcher_, SIGKILL);
    waitpid(launcher_, nullptr, 0);
  }

  // Starts `planc run` with a job of many steps; `more`: lines of YAML.
  void Start(const std::string& mesh, const std::string& run, const std::string& more) {
    const std::string job = folder_ + "/job.yaml";
    std::ofstream(job) << "job: fault\n"
                          "model: {family: llama, layers: 2, hidden: 32, heads: 4, kv_heads: 2,"
                          " ffn_hidden: 64, vocab: 256}\n"
                          "cluster: {nodes: 1, gpus_per_node: 4, device: host}\n"
                       << "mesh: {" << mesh << "}\n"
                       << "precision: {compute: fp32}\n"
                          "batch: {global: 8, micro: 1, sequence: 32}\n"
                          "optimizer: {lr: 1e-3}\n"
                          "data: {train: [train.txt], format: bytes}\n"
                       << "run: {log_every_steps: 1, directory: run, " << run << "}\n"
                       << more << "\n";
    const pid_t parent = getpid();
    launcher_ = fork();
    if (launcher_ != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    const int log = open(LogPath().c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
    dup2(log, STDOUT_FILENO);
    dup2(log, STDERR_FILENO);
    execl("planc/planc", "planc", "run", job.c_str(), nullptr);
    _exit(127);
  }

  std::string LogPath() const { return folder_ + "/planc.log"; }
  // What the run printed, each run of blanks and ends of lines as one blank.
  std::string Output() const {
    std::istringstream words(ReadText(LogPath()));
    std::string text;
    for (std::string word; words >> word;) absl::StrAppend(&text, word, " ");
    return text;
  }

  // The ranks' processes, by rank.
  std::vector<pid_t> Ranks() const { return RanksOf(launcher_); }

  // Waits until that holds; fails when the run ends first.
  void Await(const std::function<bool()>& holds) {
    while (!holds()) {
      siginfo_t ended{};
      waitid(P_PID, launcher_, &ended, WEXITED | WNOHANG | WNOWAIT);
      ASSERT_EQ(ended.si_pid, 0) << "the run has ended:\n" << Output();
      absl::SleepFor(absl::Microseconds(500));
    }
  }

  void AwaitRanks() {
    Await([this] { return Ranks().size() == kRanks; });
  }
  int64_t StepsDone() const {
    const std::string rows = ReadText(folder_ + "/run/metrics.jsonl");
    int64_t lines = 0;
    for (const char letter : rows) lines += letter == '\n' ? 1 : 0;
    return lines;
  }
  void AwaitSteps(int64_t steps) {
    Await([this, steps] { return StepsDone() >= steps; });
  }

  void AwaitOutput(const std::string& text) {
    Await([&] { return Output().find(text) != std::string::npos; });
  }

  std::vector<double> Losses() const {
    const absl::StatusOr<std::vector<StepMetrics>> rows =
        ReadMetrics(folder_ + "/run/metrics.jsonl");
    EXPECT_TRUE(rows.ok()) << rows.status();
    std::vector<double> losses;
    for (const StepMetrics& row : rows.value_or(std::vector<StepMetrics>())) {
      losses.push_back(row.loss);
    }
    return losses;
  }

  void SignalRank(int rank, int signal) {
    const std::vector<pid_t> ranks = Ranks();
    ASSERT_EQ(ranks.size(), static_cast<size_t>(kRanks));
    kill(ranks[rank], signal);
  }

  // Waits for the end of `planc run` and returns its exit code.
  int ExitCode() {
    int status = 0;
    waitpid(launcher_, &status, 0);
    launcher_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

  std::string folder_;
  pid_t launcher_ = -1;
};

constexpr char kEndless[] = "steps: 1000000, restarts: 0, stall_timeout: 3s";

TEST_F(FaultTest, AStoppedRankIsNamedWithTheInstructionThatWaitsForIt) {
  Start("dp_shard: 4", kEndless, "");
  AwaitSteps(3);
  SignalRank(2, SIGSTOP);
  EXPECT_EQ(ExitCode(), 7);
  EXPECT_THAT(Output(), AllOf(HasSubstr("rank 2 failed with signal 9 (Killed) in step"),
                              HasSubstr("it did not answer"), HasSubstr("nothing moved for 3"),
                              HasSubstr("call "), HasSubstr("instruction "),
                              HasSubstr("of ranks 0 1 2 3"), HasSubstr("waiting for rank 2")));
}

TEST_F(FaultTest, AStoppedRankIsFoundAmongSeveralGroups) {
  Start("dp_shard: 2, tp: 2", kEndless, "");
  AwaitSteps(3);
  SignalRank(0, SIGSTOP);
  EXPECT_EQ(ExitCode(), 7);
  EXPECT_THAT(Output(), AllOf(HasSubstr("rank 0 failed with signal 9 (Killed) in step"),
                              HasSubstr("it did not answer"), HasSubstr("nothing moved for")));
}

TEST_F(FaultTest, ARankThatStopsWhileTheOthersConnectIsNamed) {
  Start("dp_shard: 4", kEndless, "");
  AwaitRanks();
  SignalRank(3, SIGSTOP);
  EXPECT_EQ(ExitCode(), 7);
  EXPECT_THAT(Output(), AllOf(HasSubstr("rank 3 failed with signal 9 (Killed)"),
                              HasSubstr("it did not answer")));
}

TEST_F(FaultTest, ARankThatStopsDuringACheckpointIsNamed) {
  Start("dp_shard: 4", kEndless, "checkpoint: {every_steps: 1, async: false, directory: saved}");
  AwaitSteps(2);
  Await([this] {
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(folder_ + "/saved", error)) {
      if (entry.path().extension() == ".tmp") return true;
    }
    return false;
  });
  SignalRank(1, SIGSTOP);
  EXPECT_EQ(ExitCode(), 7);
  EXPECT_THAT(
      Output(),
      AllOf(HasSubstr("rank 1 failed with signal 9 (Killed)"), HasSubstr("it did not answer"),
            AnyOf(HasSubstr("rank 1 did not reach"), HasSubstr("nothing moved"))));
}

TEST_F(FaultTest, AKilledRankIsNamedWithItsStep) {
  Start("dp_shard: 4", kEndless, "");
  AwaitSteps(3);
  SignalRank(1, SIGKILL);
  EXPECT_EQ(ExitCode(), 7);
  EXPECT_THAT(Output(), HasSubstr("rank 1 failed with signal 9 (Killed) in step"));
}

TEST_F(FaultTest, ASignalToOneRankStopsTheRunWithACheckpoint) {
  Start("dp_shard: 4", kEndless, "checkpoint: {resume: auto, directory: saved}");
  AwaitSteps(3);
  SignalRank(2, SIGUSR1);
  EXPECT_EQ(ExitCode(), 8) << Output();
  const int64_t done = StepsDone();
  EXPECT_TRUE(Exists(absl::StrCat(folder_, "/saved"))) << Output();
  Start("dp_shard: 4", kEndless, "checkpoint: {resume: auto, directory: saved}");
  AwaitSteps(done + 2);
  EXPECT_THAT(Output(), HasSubstr(absl::StrCat("resumed after step ", done)));
}

TEST_F(FaultTest, ASignalDuringStartUpIsNotLost) {
  Start("dp_shard: 4", kEndless, "");
  AwaitRanks();
  kill(launcher_, SIGTERM);
  EXPECT_EQ(ExitCode(), 8) << Output();
}

TEST_F(FaultTest, ARestartNeverUsesTheCheckpointOfAnotherRun) {
  const std::string run = "steps: 250, restarts: 3";
  const std::string saving =
      "checkpoint: {every_steps: 100, resume: never, async: false, directory: saved}";
  Start("dp_shard: 4", run, saving);
  ASSERT_EQ(ExitCode(), 0) << Output();
  const std::vector<double> whole = Losses();
  std::filesystem::remove(LogPath());
  std::filesystem::remove_all(folder_ + "/run");

  Start("dp_shard: 4", run, saving);
  AwaitSteps(2);
  SignalRank(3, SIGKILL);
  AwaitOutput("restart 1 of 3 from the beginning");
  AwaitSteps(105);
  SignalRank(0, SIGKILL);
  EXPECT_EQ(ExitCode(), 0) << Output();
  EXPECT_THAT(Output(),
              AllOf(HasSubstr("restart 1 of 3 from the checkpoint of step 100"),
                    HasSubstr("resumed after step 100"), Not(HasSubstr("resumed after step 250"))));
  EXPECT_EQ(Losses(), whole);
}

}  // namespace
}  // namespace planc
