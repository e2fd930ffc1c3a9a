#include "runtime/launch/rank_attempt.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <iostream>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "runtime/launch/terminal.h"
#include "runtime/process_group/handshake/job_secret.h"
#include "schemas/fault.h"
#include "schemas/status.h"

namespace planc {
namespace {

constexpr int kLogLinesShown = 15;
constexpr int kLogsShown = 4;
// How long to wait for output when all ranks have ended but something holds their pipe open.
constexpr int kDrainMilliseconds = 200;

// Parts the log of an attempt from what is before it.
std::string AttemptHeading(const LocalLaunchOptions& options, int attempt) {
  return attempt == 0 ? options.log_heading : absl::StrCat("---- restart ", attempt, " ----");
}

bool IsFailure(const RankExit& end) { return end.code != 0 && end.code != kExitStopped; }

}  // namespace

std::string FaultText(const AttemptEnd& end) {
  return absl::StrCat(
      "rank ", end.rank, " failed with ", ExitText(end.exit),
      end.step == 0 ? " before its first step" : absl::StrCat(" in step ", end.step));
}

RankAttempt::RankAttempt(const LocalLaunchOptions& options,
                         const std::vector<std::string>& arguments, int attempt,
                         SignalQueue* signals)
    : options_(options), arguments_(arguments), attempt_(attempt), signals_(signals) {}

RankAttempt::~RankAttempt() {
  Signal(SIGKILL);
  for (Rank& rank : ranks_) {
    if (!rank.end.has_value()) waitpid(rank.process, nullptr, 0);
  }
}

absl::Status RankAttempt::Start() {
  std::error_code error;
  std::filesystem::create_directories(options_.log_directory, error);
  if (error) {
    return SystemError(options_.log_directory + ": cannot create", error.value());
  }
  PLANC_ASSIGN_OR_RETURN(StepPage steps, StepPage::Create(options_.world_size));
  steps_.emplace(std::move(steps));
  kills_before_ = CountOutOfMemoryKills();
  PLANC_ASSIGN_OR_RETURN(const InheritedChannel store, InheritedChannel::Create());
  PLANC_ASSIGN_OR_RETURN(secret_, DrawSecret());
  const bool terminal = isatty(STDOUT_FILENO) == 1 && TerminalRewrites(ProcessEnvironment());
  for (int64_t rank = 0; rank < options_.world_size; ++rank) {
    PLANC_RETURN_IF_ERROR(StartOne(rank, store, terminal));
  }
  for (OutputTee& tee : tees_) tee.CloseWritingEnd();
  return absl::OkStatus();
}

absl::StatusOr<Socket> RankAttempt::OpenLog(int64_t rank) const {
  const std::string path = RankLogPath(options_.log_directory, rank);
  const std::string heading = AttemptHeading(options_, attempt_);
  const int anew = heading.empty() ? O_TRUNC : 0;
  Socket log(open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | anew, 0644));
  if (log.get() < 0) {
    return SystemError(path + ": cannot write", errno);
  }
  if (!heading.empty()) WriteAll(log.get(), heading + "\n");
  return log;
}

absl::Status RankAttempt::StartOne(int64_t rank, const InheritedChannel& store, bool terminal) {
  PLANC_ASSIGN_OR_RETURN(Socket log, OpenLog(rank));
  RankCommand command{options_.executable, arguments_, {}, log.get(), log.get(), {}};
  command.environment = {{"PLANC_RANK", absl::StrCat(rank)},
                         {"PLANC_WORLD_SIZE", absl::StrCat(options_.world_size)},
                         {"PLANC_JOB", absl::StrCat("local-", getpid())},
                         {"PLANC_RESTART", absl::StrCat(attempt_)},
                         {"PLANC_SECRET", secret_},
                         {"PLANC_STORE_CHANNEL", absl::StrCat(store.clients.get())},
                         {"PLANC_STORE_SOCKET", absl::StrCat(store.server.get())},
                         {"PLANC_STEP_PAGE", absl::StrCat(steps_->descriptor())},
                         {"PLANC_RUN", options_.run},
                         {"PLANC_TERMINAL", rank == 0 && terminal ? "1" : "0"}};
  command.inherited = {steps_->descriptor(), store.clients.get()};
  if (rank == 0) {
    command.inherited.push_back(store.server.get());
    for (const int descriptor : {STDOUT_FILENO, STDERR_FILENO}) {
      PLANC_ASSIGN_OR_RETURN(OutputTee tee, OutputTee::Create(log.get(), descriptor));
      tees_.push_back(std::move(tee));
    }
    command.output = tees_[0].writing_end();
    command.error = tees_[1].writing_end();
    first_log_ = std::move(log);
  }
  PLANC_ASSIGN_OR_RETURN(const pid_t process, StartRank(command));
  ranks_.push_back({process, std::nullopt});
  return absl::OkStatus();
}

void RankAttempt::Signal(int signal) const {
  for (const Rank& rank : ranks_) {
    if (!rank.end.has_value()) kill(rank.process, signal);
  }
}

void RankAttempt::Reap() {
  for (int64_t rank = 0; rank < static_cast<int64_t>(ranks_.size()); ++rank) {
    int status = 0;
    if (ranks_[rank].end.has_value() || waitpid(ranks_[rank].process, &status, WNOHANG) <= 0) {
      continue;
    }
    ranks_[rank].end = DecodeExit(status);
    if (!IsFailure(*ranks_[rank].end)) continue;
    failures_.push_back(rank);
    if (kill_time_.has_value()) continue;
    kill_time_ = absl::Now() + options_.grace;
    std::cerr << "planc: rank " << rank << " ended with " << ExitText(*ranks_[rank].end)
              << "; waiting for the other ranks" << std::endl;
  }
}

bool RankAttempt::Running() const {
  return std::any_of(ranks_.begin(), ranks_.end(),
                     [](const Rank& rank) { return !rank.end.has_value(); });
}

int RankAttempt::PollMilliseconds() const {
  if (!kill_time_.has_value()) return -1;
  const int64_t left = absl::ToInt64Milliseconds(*kill_time_ - absl::Now()) + 1;
  return static_cast<int>(std::clamp<int64_t>(left, 0, 60'000));
}

// A sender that signals this process and its process group, as timeout(1) does, means one request;
// ranks take a second SIGINT as a wish not to wait.
void RankAttempt::PassOn(const StopRequest& request) {
  constexpr absl::Duration kOneRequest = absl::Seconds(1);
  const bool first = last_passed_on_.empty();
  absl::Time& last = last_passed_on_[request.signal];
  if (absl::Now() - last < kOneRequest) return;
  interrupted_again_ = request.signal == SIGINT && !first;
  last = absl::Now();
  if (first) {
    std::cerr << "planc: " << StopText(request)
              << ": the ranks end their step and write a checkpoint" << std::endl;
  } else if (interrupted_again_) {
    std::cerr << "planc: SIGINT again: the ranks end at once, without a checkpoint" << std::endl;
  }
  Signal(request.signal);
}

void RankAttempt::KillStragglers() {
  for (Rank& rank : ranks_) rank.killed_here = !rank.end.has_value();
  Signal(SIGKILL);
}

void RankAttempt::TakeSignals() {
  for (StopRequest next = signals_->Next(); next.signal != 0; next = signals_->Next()) {
    if (next.signal != SIGCHLD) PassOn(next);
  }
}

void RankAttempt::Watch() {
  bool killed = false;
  TakeSignals();  // one that came before the ranks were started
  while (Running() || !tees_.empty()) {
    std::vector<pollfd> polled = {{signals_->descriptor(), POLLIN, 0}};
    for (const OutputTee& tee : tees_) polled.push_back({tee.reading_end(), POLLIN, 0});
    const bool draining = !Running();
    const int wait = draining ? kDrainMilliseconds : killed ? -1 : PollMilliseconds();
    const int ready = poll(polled.data(), polled.size(), wait);
    if (draining && ready == 0) break;
    for (size_t i = tees_.size(); i-- > 0;) {
      if (polled[i + 1].revents != 0 && !tees_[i].Pass()) tees_.erase(tees_.begin() + i);
    }
    TakeSignals();
    Reap();
    if (!killed && kill_time_.has_value() && absl::Now() >= *kill_time_) {
      KillStragglers();
      killed = true;
    }
  }
}

// A rank that noticed the loss of a peer is not the one to blame. When no rank failed for a reason
// of its own, one that did not end even then was what the others waited for.
int64_t RankAttempt::RankToBlame() const {
  const auto own_reason = [this](int64_t rank) {
    const RankExit& end = *ranks_[rank].end;
    return end.signal != 0 ? !ranks_[rank].killed_here : end.code != kExitPeerLost;
  };
  const auto hung = [this](int64_t rank) { return ranks_[rank].killed_here; };
  auto blamed = std::find_if(failures_.begin(), failures_.end(), own_reason);
  if (blamed == failures_.end()) blamed = std::find_if(failures_.begin(), failures_.end(), hung);
  return blamed == failures_.end() ? failures_.front() : *blamed;
}

void RankAttempt::ShowEndOfLog(int64_t rank) const {
  const std::string path = RankLogPath(options_.log_directory, rank);
  std::cerr << "planc: the end of " << path << ":\n";
  std::vector<std::string> lines = LastLines(path, kLogLinesShown);
  const auto last = std::find(lines.rbegin(), lines.rend(), AttemptHeading(options_, attempt_));
  if (last != lines.rend()) lines.erase(lines.begin(), last.base());
  for (const std::string& line : lines) std::cerr << "  " << line << "\n";
}

std::string RankAttempt::Blame(AttemptEnd* result) const {
  result->rank = RankToBlame();
  const Rank& blamed = ranks_[result->rank];
  result->exit = *blamed.end;
  result->code = interrupted_again_ ? 128 + SIGINT : result->exit.code;
  result->step = steps_->StepOf(result->rank);
  result->fault.step = result->step;
  result->fault.code = result->exit.code;
  if (result->exit.signal == 0 || blamed.killed_here) return "";
  const OutOfMemoryKills kills = CountOutOfMemoryKills();
  result->fault.signal = result->exit.signal;
  result->fault.out_of_memory = IsOutOfMemoryKill(result->exit.signal, kills_before_, kills);
  return SignalReason(result->exit.signal, kills_before_, kills);
}

AttemptEnd RankAttempt::Report() const {
  AttemptEnd result;
  result.asked_to_stop = !last_passed_on_.empty();
  if (failures_.empty()) {
    for (const Rank& rank : ranks_) result.code = std::max(result.code, rank.end->code);
    return result;
  }
  const std::string reason = Blame(&result);
  const Rank& blamed = ranks_[result.rank];
  std::cerr << "planc: " << FaultText(result);
  if (blamed.killed_here) {
    std::cerr << ": it did not answer, nor end when rank " << failures_.front()
              << " had noticed, and was killed\n";
    int shown = 0;
    for (const int64_t rank : failures_) {
      if (!ranks_[rank].killed_here && shown++ < kLogsShown) ShowEndOfLog(rank);
    }
  } else {
    std::cerr << (reason.empty() ? "" : ":\n  ") << reason << "\n";
    ShowEndOfLog(result.rank);
  }
  std::vector<int64_t> others = failures_;
  others.erase(std::remove(others.begin(), others.end(), result.rank), others.end());
  if (!others.empty()) {
    std::cerr << "planc: because of that, these ranks failed too: " << absl::StrJoin(others, ", ")
              << "\n";
  }
  std::cerr << std::flush;
  return result;
}

}  // namespace planc
