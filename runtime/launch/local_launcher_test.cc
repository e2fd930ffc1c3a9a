#include "runtime/launch/local_launcher.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace planc {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Path of the test_rank program, from the command line.
std::string* rank_program = nullptr;

std::string ReadFile(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

class LocalLauncherTest : public ::testing::Test {
 protected:
  LocalLauncherTest() {
    const auto* const test = ::testing::UnitTest::GetInstance()->current_test_info();
    logs_ = absl::StrCat(::testing::TempDir(), "/", test->name(), "/logs");
    std::filesystem::remove_all(logs_);
  }

  LocalLaunchOptions Options(const std::string& mode, int64_t world_size) const {
    LocalLaunchOptions options;
    options.executable = *rank_program;
    options.arguments = {*rank_program, mode};
    options.world_size = world_size;
    options.log_directory = logs_;
    options.grace = absl::Milliseconds(200);
    return options;
  }

  std::string Log(int rank) const { return ReadFile(absl::StrCat(logs_, "/rank-", rank, ".log")); }

  // Launches, and keeps what is printed on standard error in message_. The exit code.
  int Launch(const LocalLaunchOptions& options) {
    ::testing::internal::CaptureStderr();
    const absl::StatusOr<int> code = LaunchLocal(options);
    message_ = ::testing::internal::GetCapturedStderr();
    EXPECT_TRUE(code.ok()) << code.status();
    return code.value_or(-1);
  }

  // The same options, with restarts after next to no pause.
  LocalLaunchOptions Restarting(const std::string& mode, int64_t restarts) const {
    LocalLaunchOptions options = Options(mode, 2);
    options.restarts = restarts;
    options.first_pause = absl::Milliseconds(1);
    return options;
  }

  // Waits until a process that this one started has written `text` to a log.
  void AwaitLog(int rank, const std::string& text) const {
    while (Log(rank).find(text) == std::string::npos) absl::SleepFor(absl::Milliseconds(5));
  }

  std::string logs_;
  std::string message_;
};

TEST_F(LocalLauncherTest, EveryRankLogsAndRankZeroIsShown) {
  ::testing::internal::CaptureStdout();
  const absl::StatusOr<int> code = LaunchLocal(Options("nothing", 3));
  const std::string shown = ::testing::internal::GetCapturedStdout();
  ASSERT_TRUE(code.ok()) << code.status();
  EXPECT_EQ(*code, 0);
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_THAT(Log(rank), HasSubstr(absl::StrCat("rank ", rank, " of 3")));
  }
  EXPECT_THAT(shown, HasSubstr("rank 0 of 3"));
  EXPECT_THAT(shown, Not(HasSubstr("rank 1")));
}

TEST_F(LocalLauncherTest, NamesTheRankThatFailedForItsOwnReason) {
  ::testing::internal::CaptureStderr();
  const absl::StatusOr<int> code = LaunchLocal(Options("exit-code", 3));
  const std::string message = ::testing::internal::GetCapturedStderr();
  ASSERT_TRUE(code.ok()) << code.status();
  EXPECT_EQ(*code, 6);
  EXPECT_THAT(message, HasSubstr("rank 1 failed with exit code 6 in step 6"));
  EXPECT_THAT(message, HasSubstr("  last words\n"));
}

TEST_F(LocalLauncherTest, ASignalIsExitCodeSevenAndTheRestIsKilled) {
  ::testing::internal::CaptureStderr();
  const absl::StatusOr<int> code = LaunchLocal(Options("crash", 3));
  const std::string message = ::testing::internal::GetCapturedStderr();
  ASSERT_TRUE(code.ok()) << code.status();
  EXPECT_EQ(*code, 7);
  EXPECT_THAT(message, HasSubstr("rank 1 failed with signal 11"));
}

TEST_F(LocalLauncherTest, ARankThatHangsIsKilledAndBlamed) {
  EXPECT_EQ(Launch(Options("hang", 3)), 7);
  EXPECT_THAT(message_, HasSubstr("rank 1 failed with signal 9 (Killed) in step 6: it did not"));
}

TEST_F(LocalLauncherTest, StartsAgainAfterASignal) {
  EXPECT_EQ(Launch(Restarting("crash-twice", 3)), 0) << message_;
  EXPECT_THAT(message_, HasSubstr("rank 1 failed with signal 9 (Killed)"));
  EXPECT_THAT(message_, HasSubstr("restart 1 of 3 from the beginning, in 1ms\n"));
  EXPECT_THAT(message_, HasSubstr("restart 2 of 3 from the beginning, in 2ms\n"));
  EXPECT_THAT(message_, Not(HasSubstr("restart 3")));
  EXPECT_THAT(Log(1), HasSubstr("rank 1 of 2 threads 1\n---- restart 1 ----\n"));
  EXPECT_THAT(Log(1), HasSubstr("---- restart 2 ----\nrank 1 of 2"));
}

TEST_F(LocalLauncherTest, GivesUpAtTheLimit) {
  EXPECT_EQ(Launch(Restarting("crash", 2)), 7);
  EXPECT_THAT(message_, HasSubstr("restart 2 of 2"));
  EXPECT_THAT(message_, HasSubstr("2 restarts without a new checkpoint"));
}

TEST_F(LocalLauncherTest, GivesUpWhenTheSameFaultRepeats) {
  EXPECT_EQ(Launch(Restarting("exit-code", 5)), 6);
  EXPECT_THAT(message_, HasSubstr("restart 1 of 5"));
  EXPECT_THAT(message_, Not(HasSubstr("restart 2 of 5")));
  EXPECT_THAT(message_, HasSubstr("the same happened before"));
}

TEST_F(LocalLauncherTest, TheSameFaultOfAnotherRankIsTheSameFault) {
  EXPECT_EQ(Launch(Restarting("take-turns", 5)), 6);
  EXPECT_THAT(message_, HasSubstr("rank 0 failed with exit code 6 in step 6"));
  EXPECT_THAT(message_, HasSubstr("rank 1 failed with exit code 6 in step 6"));
  EXPECT_THAT(message_, HasSubstr("restart 1 of 5"));
  EXPECT_THAT(message_, Not(HasSubstr("restart 2 of 5")));
}

TEST_F(LocalLauncherTest, CountsASignalThatRepeats) {
  RunFault fault;
  ::testing::internal::CaptureStderr();
  const absl::StatusOr<int> code = LaunchLocal(Restarting("crash", 2), &fault);
  const std::string message = ::testing::internal::GetCapturedStderr();
  ASSERT_TRUE(code.ok()) << code.status();
  EXPECT_EQ(fault.times, 3);
  EXPECT_EQ(fault.step, 6);
  EXPECT_EQ(fault.signal, SIGSEGV);
  EXPECT_FALSE(fault.out_of_memory);
  EXPECT_EQ(CodeOfFault(fault), 128 + SIGSEGV);
  EXPECT_THAT(message, HasSubstr("a mistake in planc or in a library, or a broken machine"));
}

TEST_F(LocalLauncherTest, ARankThatIsKilledForHangingWasNotEndedByASignal) {
  RunFault fault;
  ::testing::internal::CaptureStderr();
  const absl::StatusOr<int> code = LaunchLocal(Options("hang", 3), &fault);
  ::testing::internal::GetCapturedStderr();
  ASSERT_TRUE(code.ok()) << code.status();
  EXPECT_EQ(fault.code, 7);
  EXPECT_EQ(fault.signal, 0);
}

TEST_F(LocalLauncherTest, ANewCheckpointCountsFromTheStart) {
  LocalLaunchOptions options = Restarting("exit-code", 1);
  int asked = 0;
  options.restart_point = [&asked] {
    ++asked;  // before the first attempt, then after each fault
    const std::string identity = absl::StrCat(std::min(asked, 3));
    return RestartPoint{identity, "checkpoint " + identity, {"--resume=" + identity}};
  };
  EXPECT_EQ(Launch(options), 6);
  EXPECT_EQ(asked, 4);
  EXPECT_THAT(message_, HasSubstr("restart 1 of 1 from checkpoint 2"));
  EXPECT_THAT(message_, HasSubstr("restart 1 of 1 from checkpoint 3"));
}

TEST_F(LocalLauncherTest, AJobErrorIsNotTriedAgain) {
  EXPECT_EQ(Launch(Restarting("job-error", 5)), 2);
  EXPECT_THAT(message_, Not(HasSubstr("restart")));
}

TEST_F(LocalLauncherTest, ASignalEndsThePause) {
  LocalLaunchOptions options = Restarting("crash", 5);
  options.first_pause = options.longest_pause = absl::Hours(1);
  std::filesystem::create_directories(logs_);
  const std::string output = logs_ + "/launcher.err";
  const pid_t launcher = fork();
  if (launcher == 0) {
    if (std::freopen(output.c_str(), "w", stderr) == nullptr) _exit(97);
    const absl::StatusOr<int> code = LaunchLocal(options);
    _exit(code.ok() ? *code : 98);
  }
  while (ReadFile(output).find("restart 1 of 5") == std::string::npos) {
    absl::SleepFor(absl::Milliseconds(5));
  }
  kill(launcher, SIGTERM);
  int status = 0;
  ASSERT_EQ(waitpid(launcher, &status, 0), launcher);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 8);
}

TEST_F(LocalLauncherTest, AProgramThatCannotStartIsAFailure) {
  LocalLaunchOptions options = Options("nothing", 2);
  options.executable = "/nonexistent";
  ::testing::internal::CaptureStderr();
  const absl::StatusOr<int> code = LaunchLocal(options);
  ::testing::internal::GetCapturedStderr();
  ASSERT_TRUE(code.ok()) << code.status();
  EXPECT_EQ(*code, 127);
}

TEST_F(LocalLauncherTest, ALogDirectoryThatCannotBeMadeIsAnError) {
  LocalLaunchOptions options = Options("nothing", 2);
  options.log_directory = "/proc/nothing/here";
  EXPECT_EQ(LaunchLocal(options).status().code(), absl::StatusCode::kInternal);
}

TEST_F(LocalLauncherTest, PassesSignalsOn) {
  const pid_t launcher = fork();
  if (launcher == 0) {
    const absl::StatusOr<int> code = LaunchLocal(Options("wait-for-signal", 2));
    _exit(code.ok() ? *code : 98);
  }
  AwaitLog(0, "ready");
  AwaitLog(1, "ready");
  kill(launcher, SIGTERM);
  int status = 0;
  ASSERT_EQ(waitpid(launcher, &status, 0), launcher);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 8);
  EXPECT_THAT(Log(0), HasSubstr(absl::StrCat("signal ", SIGTERM)));
  EXPECT_THAT(Log(1), HasSubstr(absl::StrCat("signal ", SIGTERM)));
}

TEST_F(LocalLauncherTest, RanksDieWithTheLauncher) {
  const pid_t launcher = fork();
  if (launcher == 0) {
    const absl::StatusOr<int> code = LaunchLocal(Options("process-id", 2));
    _exit(code.ok() ? *code : 98);
  }
  AwaitLog(1, "process ");
  const std::string log = Log(1);
  const pid_t rank = std::atoi(log.c_str() + log.find("process ") + 8);
  ASSERT_EQ(kill(rank, 0), 0);
  kill(launcher, SIGKILL);
  ASSERT_EQ(waitpid(launcher, nullptr, 0), launcher);
  // Gone, or a zombie that nobody has reaped yet. The test's time limit catches one that lives on.
  const std::string stat = absl::StrCat("/proc/", rank, "/stat");
  while (true) {
    const std::string text = ReadFile(stat);
    if (text.empty() || text.find(") Z ") != std::string::npos) break;
    absl::SleepFor(absl::Milliseconds(5));
  }
}

}  // namespace
}  // namespace planc

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  if (argc != 2) return 2;
  planc::rank_program = new std::string(argv[1]);
  return RUN_ALL_TESTS();
}
