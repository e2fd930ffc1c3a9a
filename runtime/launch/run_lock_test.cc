#include "runtime/launch/run_lock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/launch/process_start.h"
#include "runtime/process_group/machine_identity.h"

namespace planc {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kHost[] = "here";

class RunLockTest : public testing::Test {
 protected:
  RunLockTest() {
    const auto* const info = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = absl::StrCat(testing::TempDir(), "run_lock_", info->name());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    options_.host = kHost;
    options_.watch = absl::Milliseconds(200);
    options_.beat = absl::Milliseconds(20);
  }

  std::vector<std::string> Files() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_)) {
      names.push_back(entry.path().filename().string());
    }
    return names;
  }

  // The lock of a process that ended without releasing it.
  void LeaveStaleLock() {
    const pid_t owner = fork();
    if (owner == 0) {
      const auto lock = RunLock::Take(folder_, options_);
      _exit(lock.ok() ? 0 : 1);
    }
    int status = 0;
    waitpid(owner, &status, 0);
    ASSERT_EQ(status, 0);
  }

  // Rewrites the newest lock as if a process of another machine had made it.
  void MoveLockElsewhere() {
    const auto view = ViewLock(folder_, kHost);
    ASSERT_TRUE(view.ok());
    std::string text = view->text;
    const std::string machine = MachineIdentity(kHost);
    const size_t at = text.find(machine);
    ASSERT_NE(at, std::string::npos) << text;
    text[at] = text[at] == 'x' ? 'y' : 'x';
    std::ofstream(absl::StrCat(folder_, "/", kRunLockPrefix, view->number)) << text;
  }

  // Starts `count` processes that all try to take the lock at once and keep it until all have
  // tried. Returns how many got it.
  int Race(int count) {
    int tried[2];
    int go[2];
    EXPECT_EQ(pipe(tried), 0);
    EXPECT_EQ(pipe(go), 0);
    std::vector<pid_t> processes;
    for (int i = 0; i < count; ++i) {
      const pid_t process = fork();
      if (process == 0) {
        char start = 0;
        close(go[1]);
        pollfd begins = {go[0], POLLHUP, 0};
        poll(&begins, 1, -1);  // until the parent closes its end
        const auto lock = RunLock::Take(folder_, options_);
        const char result = lock.ok() ? 'y' : absl::IsFailedPrecondition(lock.status()) ? 'n' : '?';
        [[maybe_unused]] const ssize_t told = write(tried[1], &result, 1);
        start = lock.ok() ? 'y' : 'n';
        close(tried[1]);
        if (start == 'y') pause();  // owns it until it is killed
        _exit(0);
      }
      processes.push_back(process);
    }
    close(go[0]);
    close(tried[1]);
    close(go[1]);
    int owners = 0;
    for (int i = 0; i < count; ++i) {
      char result = 0;
      EXPECT_EQ(read(tried[0], &result, 1), 1);
      EXPECT_NE(result, '?');
      owners += result == 'y' ? 1 : 0;
    }
    close(tried[0]);
    for (const pid_t process : processes) {
      kill(process, SIGKILL);
      waitpid(process, nullptr, 0);
    }
    return owners;
  }

  std::string folder_;
  RunLockOptions options_;
};

TEST_F(RunLockTest, ASecondOneIsRefusedWithTheOwnersName) {
  const auto first = RunLock::Take(folder_, options_);
  ASSERT_TRUE(first.ok()) << first.status();
  const auto second = RunLock::Take(folder_, options_);
  EXPECT_EQ(second.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(second.status().message()),
              AllOf(HasSubstr(absl::StrCat("process ", getpid(), " on host here since 20")),
                    HasSubstr(folder_)));
  EXPECT_TRUE(CheckStillOwned((*first)->path()).ok());
}

TEST_F(RunLockTest, AReleasedOneIsFree) {
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(RunLock::Take(folder_, options_).ok());
    EXPECT_EQ(ViewLock(folder_, kHost)->state, OwnerState::kNone);
  }
  EXPECT_EQ(Files(), std::vector<std::string>{"run.lock.3"}) << "older ones and drafts are removed";
}

TEST_F(RunLockTest, OneOfManyGetsIt) {
  for (int round = 0; round < 5; ++round) {
    EXPECT_EQ(Race(12), 1);
    EXPECT_EQ(Files().size(), 1u) << "of round " << round;
  }
}

TEST_F(RunLockTest, OneOfManyTakesAStaleOne) {
  for (int round = 0; round < 5; ++round) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    LeaveStaleLock();
    EXPECT_EQ(ViewLock(folder_, kHost)->state, OwnerState::kDead);
    EXPECT_EQ(Race(12), 1);
  }
}

TEST_F(RunLockTest, OneOfManyTakesAStaleOneOfAnotherMachine) {
  LeaveStaleLock();
  MoveLockElsewhere();
  EXPECT_EQ(ViewLock(folder_, kHost)->state, OwnerState::kElsewhere);
  EXPECT_EQ(Race(6), 1);
}

TEST_F(RunLockTest, OneOfManyWithoutHardLinks) {
  options_.hard_links = false;
  for (int round = 0; round < 5; ++round) EXPECT_EQ(Race(12), 1);
}

// A zombie has ended, although its process id is still there.
TEST_F(RunLockTest, AnOwnerThatWasNotReapedIsDead) {
  const pid_t owner = fork();
  if (owner == 0) {
    const auto lock = RunLock::Take(folder_, options_);
    _exit(0);
  }
  siginfo_t ended{};
  waitid(P_PID, owner, &ended, WEXITED | WNOWAIT);
  EXPECT_TRUE(absl::IsFailedPrecondition(ProcessStart(owner).status()));
  EXPECT_TRUE(RunLock::Take(folder_, options_).ok());
  waitpid(owner, nullptr, 0);
}

// A later process of the same id is not the owner.
TEST_F(RunLockTest, AReusedProcessIdIsNotTheOwner) {
  const auto lock = RunLock::Take(folder_, options_);
  ASSERT_TRUE(lock.ok());
  std::string text = ViewLock(folder_, kHost)->text;
  const std::string start = absl::StrCat("\"process_start\":", *ProcessStart(getpid()));
  text.replace(text.find(start), start.size(), "\"process_start\":1");
  std::ofstream(folder_ + "/run.lock.7") << text;
  EXPECT_EQ(ViewLock(folder_, kHost)->state, OwnerState::kDead);
}

TEST_F(RunLockTest, AHeartbeatElsewhereIsSeen) {
  const auto lock = RunLock::Take(folder_, options_);
  ASSERT_TRUE(lock.ok());
  MoveLockElsewhere();
  options_.watch = absl::Seconds(60);
  std::string told;
  options_.on_watch = [&told](const std::string& text) { told = text; };
  const auto second = RunLock::Take(folder_, options_);
  EXPECT_TRUE(absl::IsFailedPrecondition(second.status())) << second.status();
  EXPECT_THAT(told, HasSubstr("cannot be seen from here"));
}

TEST_F(RunLockTest, WatchingEndsWhenAskedTo) {
  LeaveStaleLock();
  MoveLockElsewhere();
  options_.watch = absl::Seconds(60);
  options_.cancelled = [] { return true; };
  EXPECT_TRUE(absl::IsCancelled(RunLock::Take(folder_, options_).status()));
}

// The steps of taking a lock, in order.
std::vector<std::string> StepsOf(const std::string& folder, RunLockOptions options) {
  std::vector<std::string> steps;
  options.at_step = [&steps](const char* step) { steps.emplace_back(step); };
  EXPECT_TRUE(RunLock::Take(folder, options).ok());
  return steps;
}

TEST_F(RunLockTest, WhereverItIsKilledTheNextOneTakesIt) {
  for (const bool links : {true, false}) {
    options_.hard_links = links;
    const std::vector<std::string> steps = StepsOf(folder_, options_);
    EXPECT_EQ(steps.size(), 4u);
    for (const std::string& killed_at : steps) {
      const pid_t process = fork();
      if (process == 0) {
        options_.at_step = [&](const char* step) {
          if (killed_at == step) kill(getpid(), SIGKILL);
        };
        const auto lock = RunLock::Take(folder_, options_);
        _exit(1);
      }
      int status = 0;
      waitpid(process, &status, 0);
      EXPECT_TRUE(WIFSIGNALED(status));
      const auto next = RunLock::Take(folder_, options_);
      EXPECT_TRUE(next.ok()) << "killed at " << killed_at << ": " << next.status();
      const auto other = RunLock::Take(folder_, options_);
      EXPECT_FALSE(other.ok()) << "killed at " << killed_at;
    }
  }
}

// A process that found the lock free and was then suspended finds it taken when it goes on, also
// when it has changed hands twice.
TEST_F(RunLockTest, AnOldVerdictDoesNotCount) {
  for (const int times : {1, 2, 3}) {
    std::unique_ptr<RunLock> holder;
    RunLockOptions slow = options_;
    bool first = true;
    slow.at_step = [&](const char* step) {
      if (std::strcmp(step, "judged") != 0 || !first) return;
      first = false;
      for (int i = 0; i < times; ++i) {
        holder.reset();
        auto lock = RunLock::Take(folder_, options_);
        ASSERT_TRUE(lock.ok()) << lock.status();
        holder = *std::move(lock);
      }
    };
    const auto late = RunLock::Take(folder_, slow);
    EXPECT_TRUE(absl::IsFailedPrecondition(late.status())) << times;
    EXPECT_TRUE(CheckStillOwned(holder->path()).ok());
  }
}

TEST_F(RunLockTest, AnOwnerLearnsThatItWasTakenForDead) {
  const auto lock = RunLock::Take(folder_, options_);
  ASSERT_TRUE(lock.ok());
  const std::string text = ViewLock(folder_, kHost)->text;
  std::ofstream(folder_ + "/run.lock.2") << text;
  EXPECT_THAT(std::string(CheckStillOwned((*lock)->path()).message()),
              HasSubstr("was taken over by another planc run"));
  fs::remove_all(folder_);
  EXPECT_TRUE(CheckStillOwned((*lock)->path()).ok()) << "nobody has";
}

TEST_F(RunLockTest, AFolderThatCannotBeWrittenIsNamed) {
  std::ofstream(folder_ + "/file") << "x";
  const auto in_file = RunLock::Take(folder_ + "/file", options_);
  EXPECT_TRUE(absl::IsFailedPrecondition(in_file.status()));
  EXPECT_THAT(std::string(in_file.status().message()), HasSubstr("Not a directory"));
  const auto missing = RunLock::Take(folder_ + "/none", options_);
  EXPECT_THAT(std::string(missing.status().message()), HasSubstr("No such file or directory"));
  if (geteuid() == 0) return;  // who may write anywhere
  chmod(folder_.c_str(), 0500);
  const auto unwritable = RunLock::Take(folder_, options_);
  chmod(folder_.c_str(), 0700);
  EXPECT_THAT(std::string(unwritable.status().message()), HasSubstr("Permission denied"));
}

}  // namespace
}  // namespace planc
