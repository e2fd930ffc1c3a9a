#ifndef PLANC_RUNTIME_LAUNCH_RANK_ATTEMPT_H_
#define PLANC_RUNTIME_LAUNCH_RANK_ATTEMPT_H_

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "runtime/launch/local_launcher.h"
#include "runtime/launch/rank_output.h"
#include "runtime/launch/rank_process.h"
#include "runtime/launch/run_fault.h"
#include "runtime/launch/signal_queue.h"
#include "runtime/launch/step_page.h"
#include "runtime/process_group/handshake/inherited_channel.h"
#include "runtime/process_group/socket.h"

namespace planc {

// How an attempt ended.
struct AttemptEnd {
  int code = 0;                // of the run
  int64_t rank = -1;           // the one to blame; -1 when nobody failed
  RankExit exit;               // of that rank
  int64_t step = 0;            // it was in this step, counted from 1; 0: before its first
  RunFault fault;              // the same, for comparison; code 0 when nobody failed
  bool asked_to_stop = false;  // by a signal to the launcher
};

// "rank 2 failed with signal 9 (Killed) in step 17".
std::string FaultText(const AttemptEnd& end);

// The processes of one attempt at a run.
class RankAttempt {
 public:
  // `arguments`: argv of every rank. `attempt`: 0 for the first. The references must outlive it.
  RankAttempt(const LocalLaunchOptions& options, const std::vector<std::string>& arguments,
              int attempt, SignalQueue* signals);
  // Nobody is left behind when the launch fails half-way.
  ~RankAttempt();
  RankAttempt(const RankAttempt&) = delete;
  RankAttempt& operator=(const RankAttempt&) = delete;

  absl::Status Start();
  // Waits until every rank has ended.
  void Watch();
  // What came out; tells on standard error what went wrong. REQUIRES: Watch has returned.
  AttemptEnd Report() const;

 private:
  struct Rank {
    pid_t process = -1;
    std::optional<RankExit> end;
    bool killed_here = false;  // after the grace period
  };

  absl::StatusOr<Socket> OpenLog(int64_t rank) const;
  absl::Status StartOne(int64_t rank, const InheritedChannel& store, bool terminal);
  void Signal(int signal) const;
  void PassOn(const StopRequest& request);
  void TakeSignals();
  void Reap();
  bool Running() const;
  void KillStragglers();
  int PollMilliseconds() const;
  // The failed rank that the others suffered from.
  int64_t RankToBlame() const;
  void ShowEndOfLog(int64_t rank) const;
  // Completes `result` with what is known of the rank to blame; returns why a signal ended it.
  std::string Blame(AttemptEnd* result) const;

  const LocalLaunchOptions& options_;
  const std::vector<std::string>& arguments_;
  const int attempt_;
  SignalQueue* const signals_;
  std::map<int, absl::Time> last_passed_on_;
  bool interrupted_again_ = false;  // by a second SIGINT, which does not wait for a checkpoint
  std::optional<StepPage> steps_;
  std::string secret_;  // of this attempt's ranks
  OutOfMemoryKills kills_before_;
  std::vector<Rank> ranks_;
  std::vector<int64_t> failures_;  // ranks that failed, in the order in which they ended
  std::optional<absl::Time> kill_time_;
  Socket first_log_;
  std::vector<OutputTee> tees_;
};

}  // namespace planc

#endif  // PLANC_RUNTIME_LAUNCH_RANK_ATTEMPT_H_
