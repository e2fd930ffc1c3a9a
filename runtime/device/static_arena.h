#ifndef PLANC_RUNTIME_DEVICE_STATIC_ARENA_H_
#define PLANC_RUNTIME_DEVICE_STATIC_ARENA_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "runtime/device/device.h"

namespace planc {

// One device allocation that lives as long as the session. Goes through three states and never
// back: kInit (may allocate, once), kStatic (only addresses are handed out), kTeardown (memory
// returned).
class StaticArena {
 public:
  enum class State { kInit, kStatic, kTeardown };

  // `device` must outlive the arena. `name` is for messages.
  StaticArena(Device* device, std::string name);
  ~StaticArena();
  StaticArena(const StaticArena&) = delete;
  StaticArena& operator=(const StaticArena&) = delete;

  // Asks the device for `bytes`, zero-filled, and moves to kStatic.
  // Errors: FailedPrecondition when not in kInit; ResourceExhausted from the device.
  absl::Status Allocate(int64_t bytes);
  // Returns the memory and moves to kTeardown. Allowed in every state; the destructor calls it.
  void Teardown();

  // Start of the memory; nullptr when the arena has zero bytes. REQUIRES: state() == kStatic.
  std::byte* base() const;
  // Bytes asked of the device, 0 before Allocate.
  int64_t bytes() const { return bytes_; }
  // What the memory takes of the machine by the device's account, not by what was asked of it.
  // REQUIRES: state() == kStatic.
  DeviceMemory Measure() const { return device_->Measure(base()); }
  State state() const { return state_; }

 private:
  Device* const device_;
  const std::string name_;
  State state_ = State::kInit;
  std::byte* base_ = nullptr;
  int64_t bytes_ = 0;
};

}  // namespace planc

#endif  // PLANC_RUNTIME_DEVICE_STATIC_ARENA_H_
