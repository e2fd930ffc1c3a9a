#include "runtime/device/static_arena.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "schemas/status.h"

namespace planc {

StaticArena::StaticArena(Device* device, std::string name)
    : device_(device), name_(std::move(name)) {}

StaticArena::~StaticArena() { Teardown(); }

absl::Status StaticArena::Allocate(int64_t bytes) {
  if (state_ != State::kInit) {
    return absl::FailedPreconditionError(
        absl::StrCat("arena ", name_, " is static: it is allocated once, before the first step"));
  }
  absl::StatusOr<void*> memory = device_->Allocate(bytes);
  if (!memory.ok()) return WithContext(memory.status(), absl::StrCat("arena ", name_));
  base_ = static_cast<std::byte*>(*memory);
  bytes_ = bytes;
  state_ = State::kStatic;
  return absl::OkStatus();
}

void StaticArena::Teardown() {
  device_->Release(base_);
  base_ = nullptr;
  state_ = State::kTeardown;
}

std::byte* StaticArena::base() const {
  CHECK(state_ == State::kStatic) << "arena " << name_ << " has no memory in this state";
  return base_;
}

}  // namespace planc
