#ifndef PLANC_RUNTIME_DEVICE_HOST_STREAM_H_
#define PLANC_RUNTIME_DEVICE_HOST_STREAM_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "runtime/device/abort_signal.h"
#include "runtime/device/device.h"

namespace planc {

// One event cell on the host: how often it was recorded since the last Reset. One writer at a time
// (the stream that records the event), any number of waiters. Everything the recording thread wrote
// before Record() is visible after the matching WaitFor().
class EventCounter {
 public:
  EventCounter() = default;
  EventCounter(const EventCounter&) = delete;
  EventCounter& operator=(const EventCounter&) = delete;

  void Record() {
    cell_.fetch_add(1, std::memory_order_acq_rel);
    cell_.notify_all();
  }

  // Blocks until the cell was recorded at least `count` times. False when the cell was aborted
  // first. REQUIRES: count < 2^31.
  bool WaitFor(uint32_t count) const {
    uint32_t value = cell_.load(std::memory_order_acquire);
    // Waking a thread takes longer than most waits between streams, so it first looks a few times;
    // soon it offers its core to others meanwhile, of which one may be what it waits for.
    for (int look = 0; look < kLooks && value < count; ++look) {
      look < kBusyLooks ? __builtin_ia32_pause() : std::this_thread::yield();
      value = cell_.load(std::memory_order_acquire);
    }
    while ((value & kAborted) == 0 && value < count) {
      cell_.wait(value, std::memory_order_acquire);
      value = cell_.load(std::memory_order_acquire);
    }
    return (value & kAborted) == 0;
  }

  // Makes every present and later WaitFor return false. Aborting changes the word that waiters
  // sleep on, so a waiter that is just going to sleep cannot miss it.
  void Abort() {
    cell_.fetch_or(kAborted, std::memory_order_acq_rel);
    cell_.notify_all();
  }

  uint32_t count() const { return cell_.load(std::memory_order_acquire) & ~kAborted; }

  // Back to zero records; an aborted cell stays aborted. REQUIRES: nobody records or waits.
  void Reset() { cell_.fetch_and(kAborted, std::memory_order_acq_rel); }

 private:
  static constexpr uint32_t kAborted = 1u << 31;
  static constexpr int kBusyLooks = 20;
  static constexpr int kLooks = 70;

  std::atomic<uint32_t> cell_{0};
};

// A fixed number of event cells that one AbortSignal aborts together.
class EventCells {
 public:
  // `abort` must outlive this object.
  EventCells(int64_t size, AbortSignal* abort);
  ~EventCells();
  EventCells(const EventCells&) = delete;
  EventCells& operator=(const EventCells&) = delete;

  EventCounter& operator[](int64_t index) { return cells_[index]; }
  int64_t size() const { return size_; }
  // Resets every cell. REQUIRES: nobody records or waits.
  void Reset();

 private:
  const int64_t size_;
  const std::unique_ptr<EventCounter[]> cells_;
  AbortSignal* const abort_;
  int subscription_ = 0;
};

// A thread that sleeps until Start() and then calls `body` once; then sleeps again.
class HostStream : public DeviceStream {
 public:
  HostStream(std::string name, std::function<void()> body);
  // Waits for a run in progress.
  ~HostStream() override;

  void Start() override;
  void Wait() override;
  const std::string& name() const override { return name_; }

 private:
  enum class State { kIdle, kRunning, kClosing };

  void Loop();

  const std::string name_;
  const std::function<void()> body_;
  std::mutex mutex_;
  std::condition_variable changed_;
  State state_ = State::kIdle;
  std::thread thread_;
};

}  // namespace planc

#endif  // PLANC_RUNTIME_DEVICE_HOST_STREAM_H_
