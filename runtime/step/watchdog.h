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

// Watches the positions of a rank's streams while a program runs. When none of them has moved for
// the deadline, calls `on_stall` once with DeadlineExceeded, which says for every stream in which
// instruction it is, and with which group and peers.
class Watchdog {
 public:
  // `runners` must outlive the watchdog; null entries are skipped.
  Watchdog(const Session& session, std::vector<const StreamRunner*> runners,
           absl::Duration deadline, std::function<void(const absl::Status&)> on_stall);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  // Between Arm and Disarm a program runs.
  void Arm();
  void Disarm();

 private:
  void Loop();
  uint64_t Moves() const;
  std::string Report() const;

  const Session& session_;
  const std::vector<const StreamRunner*> runners_;
  const absl::Duration deadline_;
  const std::function<void(const absl::Status&)> on_stall_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool armed_ = false;
  uint64_t arming_ = 0;  // counts Arm calls
  bool closing_ = false;
  std::thread thread_;
};

}  // namespace planc

#endif  // PLANC_RUNTIME_STEP_WATCHDOG_H_
