#include "runtime/launch/local_launcher.h"

#include <algorithm>
#include <iostream>
#include <optional>

#include "absl/strings/str_cat.h"
#include "runtime/launch/rank_attempt.h"
#include "runtime/launch/rank_process.h"
#include "runtime/launch/signal_queue.h"
#include "schemas/counted.h"
#include "schemas/status.h"

namespace planc {
namespace {

// Another attempt may end differently. The other codes are about the job, or ask for the end.
bool MayRestart(const AttemptEnd& end) {
  if (end.rank < 0 || end.asked_to_stop) return false;
  // Before the first step: data and checkpoints, which are the same again.
  if (end.exit.signal == 0 && end.code == kExitTrainingFault && end.step == 0) return false;
  return end.exit.signal != 0 || end.code == kExitInternal || end.code == kExitTrainingFault ||
         end.code == kExitPeerLost;
}

// Whether the program ended by itself, so that the same state leads to the same end.
bool IsDeterministic(const AttemptEnd& end) {
  return end.exit.signal == 0 && end.code != kExitPeerLost;
}

// Decides after each fault whether to start the ranks again.
class RestartPolicy {
 public:
  explicit RestartPolicy(const LocalLaunchOptions& options)
      : options_(options), point_(FindPoint()) {}

  // The pause before the next attempt, or nothing when this fault ends the run; says why.
  std::optional<absl::Duration> Decide(const AttemptEnd& end) {
    RestartPoint newest = FindPoint();
    if (newest.identity != point_.identity) {
      used_ = 0;
      fault_.reset();
    }
    point_ = std::move(newest);
    fault_ = CountedFault(end.fault, fault_);
    if (options_.restarts == 0) return std::nullopt;
    if (fault_->times > 1 && IsDeterministic(end)) {
      std::cerr << "planc: the same happened before, with no new checkpoint since: giving up"
                << std::endl;
      return std::nullopt;
    }
    if (used_ >= options_.restarts) {
      std::cerr << "planc: " << Counted(used_, "restart")
                << " without a new checkpoint (run.restarts is " << options_.restarts
                << "): giving up" << std::endl;
      return std::nullopt;
    }
    absl::Duration pause = options_.first_pause;
    for (int64_t i = 0; i < used_ && pause < options_.longest_pause; ++i) pause *= 2;
    pause = std::min(pause, options_.longest_pause);
    ++used_;
    std::cerr << "planc: restart " << used_ << " of " << options_.restarts << " from "
              << point_.description << ", in " << absl::FormatDuration(pause) << std::endl;
    return pause;
  }

  const RestartPoint& point() const { return point_; }
  // The last fault, with how often it happened in a row.
  const std::optional<RunFault>& fault() const { return fault_; }

 private:
  RestartPoint FindPoint() const {
    RestartPoint point;
    if (options_.restart_point != nullptr) point = options_.restart_point();
    if (point.description.empty()) point.description = "the beginning";
    return point;
  }

  const LocalLaunchOptions& options_;
  RestartPoint point_;
  int64_t used_ = 0;  // restarts since the last new checkpoint
  std::optional<RunFault> fault_;
};

}  // namespace

absl::StatusOr<int> LaunchLocal(const LocalLaunchOptions& options, RunFault* fault) {
  SignalQueue signals;
  RestartPolicy policy(options);
  std::vector<std::string> arguments = options.arguments;
  for (int attempt = 0;; ++attempt) {
    RankAttempt ranks(options, arguments, attempt, &signals);
    PLANC_RETURN_IF_ERROR(ranks.Start());
    ranks.Watch();
    const AttemptEnd end = ranks.Report();
    if (!MayRestart(end)) return end.code;
    const std::optional<absl::Duration> pause = policy.Decide(end);
    if (fault != nullptr) *fault = pause.has_value() ? RunFault() : *policy.fault();
    if (!pause.has_value()) return end.code;
    const StopRequest stop = signals.AwaitStop(*pause);
    if (stop.signal != 0) {
      std::cerr << "planc: " << StopText(stop) << " ended the pause; the run can go on from "
                << policy.point().description << std::endl;
      return kExitStopped;
    }
    arguments = options.arguments;
    const std::vector<std::string>& more = policy.point().arguments;
    arguments.insert(arguments.end(), more.begin(), more.end());
  }
}

}  // namespace planc
