#ifndef PLANC_RUNTIME_STEP_WATCHDOG_H_
#define PLANC_RUNTIME_STEP_WATCHDOG_H_

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "runtime/step/stream_runner.h"
#include "schemas/plan.h"

namespace planc {

// When a rank counts as stalled.
struct StallRule {
  // No stream of the rank has moved for this long.
  absl::Duration deadline = absl::Minutes(10);
  // Whether the deadline is only an estimate: then it is five times as long until a step has
  // ended, and at least twenty times the slowest step so far after that.
  bool estimated = false;
  // Called when the rank has not left the program although it was told to: one of its threads is
  // stuck outside the groups. Null: nothing is done about it.
  std::function<void(const absl::Status&)> on_stuck;
  absl::Duration patience = absl::Seconds(5);  // after the stall, before on_stuck
};

// Watches the positions of a rank's streams while a program runs. When the rank has stalled, calls
// `on_stall` once with DeadlineExceeded, which says for every stream in which instruction it is,
// with which group, and which peer that waits for. A rank that waits while another tells that its
// storage holds it up (StorageWatch) has not stalled, for StorageWatch::kLongest at most.
class Watchdog {
 public:
  // `runners` must outlive the watchdog; null entries are skipped.
  Watchdog(const Session& session, std::vector<const StreamRunner*> runners, StallRule rule,
           std::function<void(const absl::Status&)> on_stall);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  // Between Arm and Disarm a program runs.
  void Arm();
  // The program has ended; `typical`: its time tells how long others may take.
  void Disarm(bool typical);

 private:
  void Loop();
  uint64_t Moves() const;
  absl::Duration Deadline() const;
  std::string Report() const;
  // What ranks told of storage since it was called last; empty: nothing.
  std::string Excuse();

  const Session& session_;
  const std::vector<const StreamRunner*> runners_;
  const StallRule rule_;
  const std::function<void(const absl::Status&)> on_stall_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool armed_ = false;
  absl::Time armed_at_;
  absl::Duration slowest_;  // typical program so far
  uint64_t arming_ = 0;     // counts Arm calls
  bool closing_ = false;
  StorageWatch::Reader storage_reader_;  // of thread_
  std::thread thread_;
};

}  // namespace planc

#endif  // PLANC_RUNTIME_STEP_WATCHDOG_H_
