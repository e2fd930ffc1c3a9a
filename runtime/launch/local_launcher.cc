#include "runtime/launch/local_launcher.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <map>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "runtime/launch/rank_output.h"
#include "runtime/launch/rank_process.h"
#include "runtime/process_group/socket.h"
#include "schemas/status.h"

namespace planc {
namespace {

constexpr int kPeerLost = 7;
constexpr int kLogLinesShown = 15;
// How long to wait for output when all ranks have ended but something holds their pipe open.
constexpr int kDrainMilliseconds = 200;
constexpr char kLocalHost[] = "127.0.0.1";

// While it lives, the launcher's signals arrive at a descriptor instead of interrupting it.
class SignalQueue {
 public:
  SignalQueue() {
    sigset_t signals;
    sigemptyset(&signals);
    for (const int signal : {SIGCHLD, SIGTERM, SIGINT, SIGUSR1}) sigaddset(&signals, signal);
    pthread_sigmask(SIG_BLOCK, &signals, &previous_);
    descriptor_ = Socket(signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
  }
  ~SignalQueue() { pthread_sigmask(SIG_SETMASK, &previous_, nullptr); }

  int descriptor() const { return descriptor_.get(); }
  // The next signal, 0 when there is none.
  int Next() const {
    signalfd_siginfo info;
    if (read(descriptor_.get(), &info, sizeof(info)) != sizeof(info)) return 0;
    return static_cast<int>(info.ssi_signo);
  }

 private:
  sigset_t previous_;
  Socket descriptor_;
};

// The processes of one run.
class Ranks {
 public:
  explicit Ranks(const LocalLaunchOptions& options) : options_(options) {}
  // Nobody is left behind when the launch fails half-way.
  ~Ranks() {
    Signal(SIGKILL);
    for (Rank& rank : ranks_) {
      if (!rank.end.has_value()) waitpid(rank.process, nullptr, 0);
    }
  }

  absl::Status Start();
  // Waits until every rank has ended.
  void Watch();
  // The exit code of the run; tells on standard error what went wrong.
  int Report() const;

 private:
  struct Rank {
    pid_t process = -1;
    std::optional<RankExit> end;
    bool killed_here = false;  // after the grace period
  };

  absl::StatusOr<Socket> OpenLog(int64_t rank) const;
  absl::Status StartOne(int64_t rank, const Socket& listener, int port, bool terminal);
  void Signal(int signal) const;
  void PassOn(int signal);
  void Reap();
  bool Running() const;
  void KillStragglers();
  int PollMilliseconds() const;

  const LocalLaunchOptions& options_;
  const SignalQueue signals_;
  std::map<int, absl::Time> last_passed_on_;
  std::vector<Rank> ranks_;
  std::vector<int64_t> failures_;  // ranks that failed, in the order in which they ended
  std::optional<absl::Time> kill_time_;
  Socket first_log_;
  std::vector<OutputTee> tees_;
};

absl::Status Ranks::Start() {
  std::error_code error;
  std::filesystem::create_directories(options_.log_directory, error);
  if (error) {
    return absl::InternalError(
        absl::StrCat("cannot create ", options_.log_directory, ": ", error.message()));
  }
  PLANC_ASSIGN_OR_RETURN(const Socket listener, ListenOn(kLocalHost, 0));
  PLANC_ASSIGN_OR_RETURN(const int port, BoundPort(listener));
  const bool terminal = isatty(STDOUT_FILENO) != 0;
  for (int64_t rank = 0; rank < options_.world_size; ++rank) {
    PLANC_RETURN_IF_ERROR(StartOne(rank, listener, port, terminal));
  }
  for (OutputTee& tee : tees_) tee.CloseWritingEnd();
  return absl::OkStatus();
}

absl::StatusOr<Socket> Ranks::OpenLog(int64_t rank) const {
  const std::string path = RankLogPath(options_.log_directory, rank);
  Socket log(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644));
  if (log.get() < 0) {
    return absl::InternalError(absl::StrCat("cannot write ", path, ": ", std::strerror(errno)));
  }
  return log;
}

absl::Status Ranks::StartOne(int64_t rank, const Socket& listener, int port, bool terminal) {
  PLANC_ASSIGN_OR_RETURN(Socket log, OpenLog(rank));
  RankCommand command{options_.executable, options_.arguments, {}, log.get(), log.get(), -1};
  command.environment = {{"PLANC_RANK", absl::StrCat(rank)},
                         {"PLANC_WORLD_SIZE", absl::StrCat(options_.world_size)},
                         {"PLANC_JOB", absl::StrCat("local-", getpid())},
                         {"PLANC_RESTART", absl::StrCat(options_.restart)},
                         {"PLANC_STORE_PORT", absl::StrCat(port)},
                         {"PLANC_STORE_SOCKET", absl::StrCat(listener.get())},
                         {"PLANC_TERMINAL", rank == 0 && terminal ? "1" : "0"}};
  if (rank == 0) {
    command.inherited = listener.get();
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

void Ranks::Signal(int signal) const {
  for (const Rank& rank : ranks_) {
    if (!rank.end.has_value()) kill(rank.process, signal);
  }
}

void Ranks::Reap() {
  for (int64_t rank = 0; rank < static_cast<int64_t>(ranks_.size()); ++rank) {
    int status = 0;
    if (ranks_[rank].end.has_value() || waitpid(ranks_[rank].process, &status, WNOHANG) <= 0) {
      continue;
    }
    ranks_[rank].end = DecodeExit(status);
    if (ranks_[rank].end->code == 0) continue;
    failures_.push_back(rank);
    if (kill_time_.has_value()) continue;
    kill_time_ = absl::Now() + options_.grace;
    std::cerr << "planc: rank " << rank << " ended with " << ExitText(*ranks_[rank].end)
              << "; waiting for the other ranks" << std::endl;
  }
}

bool Ranks::Running() const {
  return std::any_of(ranks_.begin(), ranks_.end(),
                     [](const Rank& rank) { return !rank.end.has_value(); });
}

int Ranks::PollMilliseconds() const {
  if (!kill_time_.has_value()) return -1;
  const int64_t left = absl::ToInt64Milliseconds(*kill_time_ - absl::Now()) + 1;
  return static_cast<int>(std::clamp<int64_t>(left, 0, 60'000));
}

// A sender that signals this process and its process group, as timeout(1) does, means one request;
// ranks take a second one as a wish not to wait.
void Ranks::PassOn(int signal) {
  constexpr absl::Duration kOneRequest = absl::Seconds(1);
  absl::Time& last = last_passed_on_[signal];
  if (absl::Now() - last < kOneRequest) return;
  last = absl::Now();
  Signal(signal);
}

void Ranks::KillStragglers() {
  for (Rank& rank : ranks_) rank.killed_here = !rank.end.has_value();
  Signal(SIGKILL);
}

void Ranks::Watch() {
  bool killed = false;
  while (Running() || !tees_.empty()) {
    std::vector<pollfd> polled = {{signals_.descriptor(), POLLIN, 0}};
    for (const OutputTee& tee : tees_) polled.push_back({tee.reading_end(), POLLIN, 0});
    const bool draining = !Running();
    const int wait = draining ? kDrainMilliseconds : killed ? -1 : PollMilliseconds();
    const int ready = poll(polled.data(), polled.size(), wait);
    if (draining && ready == 0) break;
    for (size_t i = tees_.size(); i-- > 0;) {
      if (polled[i + 1].revents != 0 && !tees_[i].Pass()) tees_.erase(tees_.begin() + i);
    }
    for (int signal = signals_.Next(); signal != 0; signal = signals_.Next()) {
      if (signal == SIGCHLD) {
        Reap();
      } else {
        PassOn(signal);
      }
    }
    if (!killed && kill_time_.has_value() && absl::Now() >= *kill_time_) {
      KillStragglers();
      killed = true;
    }
  }
}

int Ranks::Report() const {
  if (failures_.empty()) return 0;
  // A rank that noticed the loss of a peer, or had to be killed for it, is not the one to blame.
  const auto cause = std::find_if(failures_.begin(), failures_.end(), [this](int64_t rank) {
    const RankExit& end = *ranks_[rank].end;
    return end.signal != 0 ? !ranks_[rank].killed_here : end.code != kPeerLost;
  });
  const int64_t blamed = cause == failures_.end() ? failures_.front() : *cause;
  const RankExit end = *ranks_[blamed].end;
  const std::string path = RankLogPath(options_.log_directory, blamed);
  std::cerr << "planc: rank " << blamed << " failed with " << ExitText(end) << "; the end of "
            << path << ":\n";
  for (const std::string& line : LastLines(path, kLogLinesShown)) std::cerr << "  " << line << "\n";
  std::vector<int64_t> others = failures_;
  others.erase(std::remove(others.begin(), others.end(), blamed), others.end());
  if (!others.empty()) {
    std::cerr << "planc: after that, these ranks failed too: " << absl::StrJoin(others, ", ")
              << "\n";
  }
  std::cerr << std::flush;
  return end.code;
}

}  // namespace

absl::StatusOr<int> LaunchLocal(const LocalLaunchOptions& options) {
  Ranks ranks(options);
  PLANC_RETURN_IF_ERROR(ranks.Start());
  ranks.Watch();
  return ranks.Report();
}

}  // namespace planc
