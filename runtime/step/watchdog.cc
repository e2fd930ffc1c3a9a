#include "runtime/step/watchdog.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "runtime/process_group/process_group.h"

namespace planc {
namespace {

// Margins of an estimated deadline.
constexpr double kBeforeFirstStep = 5;
constexpr double kOverSlowestStep = 20;

}  // namespace

Watchdog::Watchdog(const Session& session, std::vector<const StreamRunner*> runners, StallRule rule,
                   std::function<void(const absl::Status&)> on_stall)
    : session_(session),
      runners_(std::move(runners)),
      rule_(std::move(rule)),
      on_stall_(std::move(on_stall)),
      thread_([this] { Loop(); }) {}

Watchdog::~Watchdog() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Watchdog::Arm() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    armed_ = true;
    armed_at_ = absl::Now();
    ++arming_;
  }
  changed_.notify_all();
}

void Watchdog::Disarm(bool typical) {
  const std::lock_guard<std::mutex> lock(mutex_);
  armed_ = false;
  if (typical) slowest_ = std::max(slowest_, absl::Now() - armed_at_);
  changed_.notify_all();
}

absl::Duration Watchdog::Deadline() const {
  if (!rule_.estimated) return rule_.deadline;
  if (slowest_ == absl::ZeroDuration()) return kBeforeFirstStep * rule_.deadline;
  return std::max(rule_.deadline, kOverSlowestStep * slowest_);
}

void Watchdog::Loop() {
  const auto poll = absl::ToChronoNanoseconds(
      std::clamp(rule_.deadline / 8, absl::Milliseconds(1), absl::Seconds(5)));
  std::unique_lock<std::mutex> lock(mutex_);
  uint64_t seen_moves = 0;
  uint64_t seen_arming = 0;
  absl::Time last_move = absl::Now();
  absl::Time looked = last_move;  // when the deadline was last begun anew
  std::string excuse;             // the last one since then
  while (!closing_) {
    if (!armed_) {
      changed_.wait(lock, [this] { return armed_ || closing_; });
    } else {
      changed_.wait_for(lock, poll, [this] { return closing_; });
    }
    const uint64_t moves = Moves();
    if (!armed_ || moves != seen_moves || arming_ != seen_arming) {
      seen_moves = moves;
      seen_arming = arming_;
      last_move = looked = absl::Now();
      excuse.clear();
    } else if (absl::Now() - looked >= Deadline()) {
      lock.unlock();
      const std::string told = Excuse();
      lock.lock();
      if (!told.empty()) excuse = told;
      // Something may have moved meanwhile, too.
      const bool same = armed_ && arming_ == seen_arming && Moves() == seen_moves;
      if (!same || (!told.empty() && absl::Now() - last_move < StorageWatch::kLongest)) {
        looked = absl::Now();
        continue;
      }
      const absl::Status stall = absl::DeadlineExceededError(absl::StrCat(
          "nothing moved for ",
          absl::FormatDuration(absl::Trunc(absl::Now() - last_move, absl::Milliseconds(1))),
          excuse.empty() ? "" : "; storage: ", excuse, "\n", Report()));
      lock.unlock();
      on_stall_(stall);
      lock.lock();
      const auto patience = absl::ToChronoNanoseconds(rule_.patience);
      changed_.wait_for(lock, patience, [this] { return closing_ || !armed_; });
      if (!closing_ && armed_ && rule_.on_stuck != nullptr) rule_.on_stuck(stall);
      changed_.wait(lock, [this] { return closing_; });
    }
  }
}

std::string Watchdog::Excuse() {
  StorageWatch* const storage =
      session_.groups() == nullptr ? nullptr : session_.groups()->storage();
  return storage == nullptr ? "" : storage->Told(StorageUse::kForeground, &storage_reader_);
}

uint64_t Watchdog::Moves() const {
  uint64_t moves = 0;
  for (const StreamRunner* runner : runners_) {
    moves += runner->position().moves.load(std::memory_order_relaxed);
  }
  return moves;
}

// One line for each stream that is inside the program, the ones that communicate first: what they
// wait for is outside this rank.
std::string Watchdog::Report() const {
  std::vector<std::string> running;
  std::vector<std::string> waiting;
  for (const StreamRunner* runner : runners_) {
    const StreamPosition& position = runner->position();
    const StreamPosition::Phase phase = position.phase.load(std::memory_order_relaxed);
    const PreparedCall* const call = position.call.load(std::memory_order_relaxed);
    if (phase == StreamPosition::Phase::kIdle || call == nullptr) continue;
    const int index = position.instruction.load(std::memory_order_relaxed);
    std::string line = absl::StrCat(
        "  rank ", session_.rank(), ", stream ", StreamName(runner->stream()),
        phase == StreamPosition::Phase::kRunning ? " is in " : " waits for events before ",
        PositionText(session_.plan(), *call, position.microbatch.load(std::memory_order_relaxed),
                     index));
    const PreparedInstruction& instruction = session_.block(call->block).instructions[index];
    if (instruction.group != nullptr) {
      const GroupMembership& group = instruction.group->membership();
      absl::StrAppend(&line, " [group ", group.name, " of ranks ",
                      absl::StrJoin(group.members, " "));
      const int64_t awaited = instruction.group->AwaitedRank();
      if (instruction.peer >= 0) {
        absl::StrAppend(&line, ", peer rank ", group.members[instruction.peer]);
      } else if (awaited >= 0) {
        absl::StrAppend(&line, ", waiting for rank ", awaited);
      }
      absl::StrAppend(&line, "]");
    }
    (phase == StreamPosition::Phase::kRunning ? running : waiting).push_back(line);
  }
  running.insert(running.end(), waiting.begin(), waiting.end());
  return absl::StrJoin(running, "\n");
}

}  // namespace planc
