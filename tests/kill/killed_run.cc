#include "tests/kill/killed_run.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "runtime/checkpoint/checkpoint_directory.h"
#include "tests/run_files.h"

namespace planc {
namespace {

constexpr absl::Duration kGlance = absl::Microseconds(500);

int64_t NewestStep(const std::string& directory) {
  const std::vector<CheckpointEntry> entries = ListCheckpoints(directory);
  return entries.empty() ? 0 : entries.back().step;
}

// Whether a folder that a save writes into is there.
bool IsWriting(const std::string& directory) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    if (entry.path().extension() == ".tmp") return true;
  }
  return false;
}

}  // namespace

std::string KillCounts::Text() const {
  return absl::StrFormat(
      "%d kills (%d of the launcher), %d during a write, %d without a new checkpoint since the "
      "kill before, %d starts of planc run",
      kills, launcher, during_write, without_progress, starts);
}

KilledRun::KilledRun(std::vector<std::string> command, std::string checkpoints, std::string log,
                     uint64_t seed)
    : command_(std::move(command)),
      checkpoints_(std::move(checkpoints)),
      log_(std::move(log)),
      random_(seed) {}

KilledRun::~KilledRun() {
  if (launcher_ < 0) return;
  kill(launcher_, SIGKILL);
  waitpid(launcher_, nullptr, 0);
}

int64_t KilledRun::Uniform(int64_t low, int64_t high) {
  return std::uniform_int_distribution<int64_t>(low, high)(random_);
}

void KilledRun::Start() {
  ++counts_.starts;
  std::vector<std::string> arguments = command_;
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  const pid_t parent = getpid();
  launcher_ = fork();
  if (launcher_ != 0) return;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  const int log = open(log_.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
  dup2(log, STDOUT_FILENO);
  dup2(log, STDERR_FILENO);
  execv(pointers[0], pointers.data());
  _exit(127);
}

bool KilledRun::Alive() {
  if (launcher_ < 0) return false;
  int status = 0;
  if (waitpid(launcher_, &status, WNOHANG) == 0) return true;
  exit_code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  launcher_ = -1;
  return false;
}

bool KilledRun::AwaitRanks(int64_t ranks) {
  while (Alive()) {
    const std::vector<pid_t> running = RanksOf(launcher_);
    const bool fresh = std::none_of(running.begin(), running.end(), [this](pid_t rank) {
      return std::find(aimed_at_.begin(), aimed_at_.end(), rank) != aimed_at_.end();
    });
    if (fresh && static_cast<int64_t>(running.size()) == ranks) return true;
    absl::SleepFor(kGlance);
  }
  return false;
}

bool KilledRun::AwaitMoment() {
  const int64_t kind = Uniform(0, 3);
  if (kind == 0) {  // soon, often before the first step
    absl::SleepFor(absl::Milliseconds(Uniform(0, 600)));
    return Alive();
  }
  const int64_t from = NewestStep(checkpoints_);
  int64_t awaited = kind == 1 ? 1 : Uniform(0, 3);  // checkpoints
  int64_t newest = from;
  while (awaited > 0) {
    if (!Alive()) return false;
    const int64_t now = NewestStep(checkpoints_);
    if (now > newest) --awaited;
    newest = std::max(newest, now);
    absl::SleepFor(kGlance);
  }
  while (kind == 1 && !IsWriting(checkpoints_)) {
    if (!Alive()) return false;
    absl::SleepFor(absl::Microseconds(100));
  }
  absl::SleepFor(absl::Microseconds(kind == 1 ? Uniform(0, 3000) : Uniform(0, 60'000)));
  return Alive();
}

void KilledRun::KillOne() {
  aimed_at_ = RanksOf(launcher_);
  if (aimed_at_.empty()) return;
  const bool whole = Uniform(0, 9) == 0;
  const pid_t target =
      whole ? launcher_ : aimed_at_[Uniform(0, static_cast<int64_t>(aimed_at_.size()) - 1)];
  const int64_t newest = NewestStep(checkpoints_);
  const bool writing = IsWriting(checkpoints_);
  if (kill(target, SIGKILL) != 0) return;
  ++counts_.kills;
  counts_.launcher += whole ? 1 : 0;
  counts_.during_write += writing ? 1 : 0;
  counts_.without_progress += newest == checkpoint_at_kill_ ? 1 : 0;
  checkpoint_at_kill_ = newest;
  if (!whole) return;
  waitpid(launcher_, nullptr, 0);
  launcher_ = -1;
}

int KilledRun::Run(int kills, int64_t ranks) {
  Start();
  while (counts_.kills < kills) {
    if (AwaitRanks(ranks) && AwaitMoment()) KillOne();
    if (Alive()) continue;
    if (exit_code_ == 0) return 0;  // too early; the caller sees how many kills there were
    Start();
  }
  while (true) {
    while (Alive()) absl::SleepFor(absl::Milliseconds(10));
    // The last kill was one too many for the launcher, or the third in a row in one step.
    if (exit_code_ != 7 && exit_code_ != 128 + SIGKILL) return exit_code_;
    Start();
  }
}

}  // namespace planc
