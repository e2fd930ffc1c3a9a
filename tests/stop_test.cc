// Asks real runs to stop, in every way that people, terminals and batch systems do, and takes away
// what they print to: a run ends with a checkpoint and exit code 8, or goes on.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/run_files.h"
#include "tests/started_run.h"

namespace planc {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kRanks = 4;
constexpr char kEndless[] = "steps: 1000000, restarts: 0";

std::string Folder(const std::string& name = "") {
  const auto* const info = ::testing::UnitTest::GetInstance()->current_test_info();
  std::string test = info->name();
  for (char& letter : test) letter = letter == '/' ? '_' : letter;
  return absl::StrCat(::testing::TempDir(), "/", info->test_suite_name()[0] == 'S' ? "S" : "P",
                      test, name);
}

std::unique_ptr<StartedRun> FourRanks(const std::string& run = kEndless) {
  return std::make_unique<StartedRun>(Folder(), kRanks, "dp_shard: 4", run, "");
}

std::unique_ptr<StartedRun> OneRank(const std::string& run = kEndless) {
  return std::make_unique<StartedRun>(Folder(), 1, "", run, "");
}

bool HasRanks(const StartedRun& run) {
  return RanksOf(run.process()).size() == static_cast<size_t>(kRanks);
}

// As systemd, LSF, PBS and HTCondor do.
void SignalAll(const StartedRun& run, int signal) {
  const std::vector<pid_t> ranks = RanksOf(run.process());
  for (const pid_t rank : ranks) kill(rank, signal);
  kill(run.process(), signal);
  for (const pid_t rank : ranks) kill(rank, signal);
}

// The run ends with a checkpoint of its last step, and says so.
void ExpectStopped(StartedRun* run, const std::string& name) {
  EXPECT_EQ(run->ExitCode(), 8) << run->Output();
  EXPECT_GT(run->StepsSaved(), 0) << run->Output();
  EXPECT_EQ(run->StepsSaved(), run->RowsOfMetrics()) << run->Output();
  EXPECT_THAT(
      run->Output(),
      AllOf(HasSubstr(absl::StrCat("stopped by ", name)),
            HasSubstr(absl::StrCat("after step ", run->StepsSaved(), " of 1000000")),
            HasSubstr(absl::StrCat("saved/step-",
                                   std::string(8 - std::to_string(run->StepsSaved()).size(), '0'),
                                   run->StepsSaved())),
            HasSubstr("go on with planc run job.yaml")));
}

class SignalTest : public ::testing::TestWithParam<int> {};

std::string NameOf(int signal) { return absl::StrCat("SIG", sigabbrev_np(signal)); }

TEST_P(SignalTest, ToLauncherAndRanksTogetherStopsWithACheckpoint) {
  const auto run = FourRanks();
  run->Start({"run", "job.yaml"});
  ASSERT_TRUE(run->Await([&] { return run->RowsOfMetrics() >= 3; })) << run->Output();
  SignalAll(*run, GetParam());
  ExpectStopped(run.get(), NameOf(GetParam()));
}

TEST_P(SignalTest, TwiceToTheOnlyProcessStopsWithACheckpoint) {
  const auto run = OneRank();
  run->Start({"run", "job.yaml"});
  ASSERT_TRUE(run->Await([&] { return run->RowsOfMetrics() >= 3; })) << run->Output();
  kill(run->process(), GetParam());
  kill(run->process(), GetParam());
  ExpectStopped(run.get(), absl::StrCat(NameOf(GetParam()), " from process ", getpid(), " ("));
}

INSTANTIATE_TEST_SUITE_P(Every, SignalTest,
                         ::testing::Values(SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2, SIGXCPU),
                         [](const auto& info) { return NameOf(info.param); });

TEST(StopTest, AnyMixtureOfSignalsIsOneRequest) {
  const auto run = FourRanks();
  run->Start({"run", "job.yaml"});
  ASSERT_TRUE(run->Await([&] { return run->RowsOfMetrics() >= 3; })) << run->Output();
  for (const int signal : {SIGHUP, SIGTERM, SIGUSR2, SIGTERM}) SignalAll(*run, signal);
  ExpectStopped(run.get(), "SIGHUP");
}

TEST(StopTest, DuringTheStartNothingIsLost) {
  const auto run = FourRanks();
  run->Start({"run", "job.yaml"});
  ASSERT_TRUE(run->Await([&] { return HasRanks(*run); })) << run->Output();
  SignalAll(*run, SIGTERM);
  EXPECT_EQ(run->ExitCode(), 8) << run->Output();
  EXPECT_THAT(run->Output(), AllOf(HasSubstr("SIGTERM"), HasSubstr("go on with planc run job.yaml"),
                                   Not(HasSubstr("failed"))));
}

TEST(StopTest, InEveryPhaseOfALaterStart) {
  const auto run = FourRanks("steps: 1000000, restarts: 0, eval_every_steps: 1, eval_batches: 3");
  // Each start is stopped a little later: while it connects, loads, validates, trains, saves.
  int64_t saved = -1;
  for (int begun = 0; begun < 8; ++begun) {
    const std::string log = run->folder() + "/run/logs/rank-0.log";
    const size_t before = ReadText(log).size();  // of earlier starts, which stays
    run->Start({"run", "job.yaml"});
    ASSERT_TRUE(run->Await([&] { return HasRanks(*run); })) << run->Output();
    if (begun > 0) {
      ASSERT_TRUE(run->Await([&] {
        return ReadText(log).size() >= before + static_cast<size_t>(100 * begun);
      })) << run->Output();
    }
    SignalAll(*run, begun % 2 == 0 ? SIGTERM : SIGHUP);
    EXPECT_EQ(run->ExitCode(), 8) << run->Output();
    EXPECT_GE(run->StepsSaved(), saved) << "a later stop lost steps";
    EXPECT_EQ(run->StepsSaved() == -1 ? 0 : run->StepsSaved(), run->RowsOfMetrics());
    saved = run->StepsSaved();
  }
  EXPECT_GT(saved, 0) << run->Output();
}

TEST(StopTest, DuringThePauseBeforeARestart) {
  const auto run = FourRanks("steps: 1000000, restarts: 1000");
  run->Start({"run", "job.yaml"});
  // Each restart without a new checkpoint doubles the pause.
  ASSERT_TRUE(run->Await([&] {
    const std::vector<pid_t> ranks = RanksOf(run->process());
    if (!ranks.empty()) kill(ranks.back(), SIGKILL);
    return run->Output().find("restart 2 of 1000") != std::string::npos;
  })) << run->Output();
  SignalAll(*run, SIGTERM);
  EXPECT_EQ(run->ExitCode(), 8) << run->Output();
  EXPECT_THAT(run->Output(), HasSubstr("go on with planc run job.yaml"));
}

TEST(StopTest, ASecondInterruptLaterDoesNotWait) {
  const auto run = FourRanks();
  run->Start({"run", "job.yaml"});
  ASSERT_TRUE(run->Await([&] { return run->RowsOfMetrics() >= 1; })) << run->Output();
  // A stopped rank keeps the others from ending their step.
  const std::vector<pid_t> ranks = RanksOf(run->process());
  ASSERT_EQ(ranks.size(), static_cast<size_t>(kRanks));
  kill(ranks[3], SIGSTOP);
  EXPECT_TRUE(run->Await([&] {
    kill(run->process(), SIGINT);
    return run->Output().find("SIGINT again") != std::string::npos;
  })) << run->Output();
  kill(ranks[3], SIGCONT);
  EXPECT_EQ(run->ExitCode(), 130) << run->Output();
}

TEST(StopTest, WhatIsIgnoredStaysIgnored) {
  const auto run = OneRank("steps: 10, restarts: 0");
  run->Start({"run", "job.yaml"}, [] { std::signal(SIGHUP, SIG_IGN); });  // as nohup does
  ASSERT_TRUE(run->Await([&] { return run->RowsOfMetrics() >= 1; })) << run->Output();
  kill(run->process(), SIGHUP);
  EXPECT_EQ(run->ExitCode(), 0) << run->Output();
  EXPECT_EQ(run->RowsOfMetrics(), 10);
}

// Ranks that another program started, as srun, torchrun and mpirun do.
TEST(StopTest, RanksOfAnotherLauncherStopTogether) {
  for (const bool all : {true, false}) {
    const std::string port = absl::StrCat(21000 + getpid() % 9000);
    StartedRun first(Folder("0"), 2, "dp_shard: 2", kEndless, "");
    StartedRun second(Folder("1"), 2, "dp_shard: 2", kEndless, "");
    const auto as_rank = [&port](int rank) {
      return [rank, port] {
        setenv("RANK", std::to_string(rank).c_str(), 1);
        setenv("LOCAL_RANK", std::to_string(rank).c_str(), 1);
        setenv("WORLD_SIZE", "2", 1);
        setenv("LOCAL_WORLD_SIZE", "2", 1);
        setenv("MASTER_ADDR", "127.0.0.1", 1);
        setenv("MASTER_PORT", port.c_str(), 1);
      };
    };
    // The job's directory is that of rank 0.
    const std::string job = first.folder() + "/job.yaml";
    first.Start({"run", job}, as_rank(0));
    second.Start({"run", job}, as_rank(1));
    ASSERT_TRUE(first.Await([&] { return first.RowsOfMetrics() >= 3; })) << first.Output();
    for (int times = 0; times < 2; ++times) {
      if (all) kill(first.process(), SIGTERM);
      kill(second.process(), SIGTERM);
    }
    EXPECT_EQ(first.ExitCode(), 8) << first.Output();
    EXPECT_EQ(second.ExitCode(), 8) << second.Output();
    EXPECT_EQ(first.StepsSaved(), first.RowsOfMetrics());
    EXPECT_THAT(first.Output(),
                AllOf(HasSubstr("stopped by SIGTERM"),
                      HasSubstr("go on with the launcher as before, and planc run")));
  }
}

// What becomes of standard output and error is not the training's business.
void CloseReaders() {
  int ends[2];
  if (pipe(ends) != 0) _exit(125);
  close(ends[0]);
  dup2(ends[1], STDOUT_FILENO);
  dup2(ends[1], STDERR_FILENO);
}

void FillDisk() {
  const int full = open("/dev/full", O_WRONLY);
  dup2(full, STDOUT_FILENO);
  dup2(full, STDERR_FILENO);
}

void CloseAll() {
  close(STDIN_FILENO);
  close(STDOUT_FILENO);
  close(STDERR_FILENO);
}

TEST(StopTest, OutputThatNobodyTakesDoesNotEndTheTraining) {
  for (const auto& prepare : {&CloseReaders, &FillDisk, &CloseAll}) {
    const auto one = OneRank("steps: 6, restarts: 0");
    EXPECT_EQ(one->Run({"run", "job.yaml"}, prepare), 0);
    EXPECT_EQ(one->RowsOfMetrics(), 6);
    EXPECT_EQ(one->StepsSaved(), 6);
    const auto four = FourRanks("steps: 6, restarts: 0");
    EXPECT_EQ(four->Run({"run", "job.yaml"}, prepare), 0);
    EXPECT_EQ(four->RowsOfMetrics(), 6);
    EXPECT_EQ(four->StepsSaved(), 6);
    EXPECT_THAT(ReadText(four->folder() + "/run/logs/rank-0.log"), HasSubstr("step 6/6"));
  }
}

TEST(StopTest, MetricsThatCannotBeWrittenStopTheRunWithACheckpoint) {
  for (const int ranks : {1, 2}) {
    StartedRun run(Folder(), ranks, ranks == 1 ? "" : "dp_shard: 2", kEndless, "");
    std::filesystem::create_directories(run.folder() + "/run");
    std::filesystem::create_symlink("/dev/full", run.folder() + "/run/metrics.jsonl");
    // A disk may get room again, so a scheduler may start it again.
    EXPECT_EQ(run.Run({"run", "job.yaml"}), 8) << run.Output();
    EXPECT_GT(run.StepsSaved(), 100) << run.Output();
    EXPECT_THAT(run.Output(),
                AllOf(HasSubstr("run/metrics.jsonl: cannot write: No space left on device"),
                      HasSubstr(absl::StrCat("training stopped after step ", run.StepsSaved()))));
  }
}

}  // namespace
}  // namespace planc
