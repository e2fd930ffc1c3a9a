#include "runtime/device/abort_signal.h"

#include <algorithm>

#include "glog/logging.h"

namespace planc {

void AbortSignal::Abort(const absl::Status& reason) {
  CHECK(!reason.ok()) << "an abort needs a reason";
  // Listeners run under the lock, so that Unsubscribe can promise that none is running.
  std::lock_guard<std::mutex> lock(mutex_);
  if (aborted()) return;
  reason_ = reason;
  aborted_.store(true, std::memory_order_release);
  for (const auto& [subscription, listener] : listeners_) listener(reason_);
}

absl::Status AbortSignal::status() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return reason_;
}

int AbortSignal::Subscribe(Listener listener) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (aborted()) listener(reason_);
  listeners_.emplace_back(next_subscription_, std::move(listener));
  return next_subscription_++;
}

void AbortSignal::Unsubscribe(int subscription) {
  std::lock_guard<std::mutex> lock(mutex_);
  listeners_.erase(
      std::remove_if(listeners_.begin(), listeners_.end(),
                     [subscription](const auto& entry) { return entry.first == subscription; }),
      listeners_.end());
}

}  // namespace planc
