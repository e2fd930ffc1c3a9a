#ifndef PLANC_RUNTIME_DEVICE_ABORT_SIGNAL_H_
#define PLANC_RUNTIME_DEVICE_ABORT_SIGNAL_H_

#include <atomic>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/status/status.h"

namespace planc {

// One-way switch that ends everything a rank is waiting for. Whoever fails first (an instruction,
// the watchdog, a lost peer) throws it with a reason; event cells, streams and process groups
// subscribe to it and wake their waiters. Thread-safe.
class AbortSignal {
 public:
  using Listener = std::function<void(const absl::Status& reason)>;

  AbortSignal() = default;
  AbortSignal(const AbortSignal&) = delete;
  AbortSignal& operator=(const AbortSignal&) = delete;

  // Calls every listener with `reason`, in the calling thread. Only the first call counts.
  // REQUIRES: !reason.ok().
  void Abort(const absl::Status& reason);

  bool aborted() const { return aborted_.load(std::memory_order_acquire); }

  // The first reason; OK while nothing failed.
  absl::Status status() const;

  // Adds a listener; calls it at once when the signal is already thrown. A listener must not call
  // back into this object. Returns the number to Unsubscribe with.
  int Subscribe(Listener listener);
  // The listener is not running and will not run any more when this returns.
  void Unsubscribe(int subscription);

 private:
  std::atomic<bool> aborted_{false};
  mutable std::mutex mutex_;
  absl::Status reason_;
  int next_subscription_ = 0;
  std::vector<std::pair<int, Listener>> listeners_;
};

}  // namespace planc

#endif  // PLANC_RUNTIME_DEVICE_ABORT_SIGNAL_H_
