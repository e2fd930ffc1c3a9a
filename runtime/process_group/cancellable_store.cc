#include "runtime/process_group/cancellable_store.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace planc {
namespace {

// A wait is made of waits of this length.
constexpr absl::Duration kSlice = absl::Milliseconds(500);

absl::Status CancelledAt(const std::string& key) {
  return absl::CancelledError(absl::StrCat("store key ", key, ": the wait was ended"));
}

}  // namespace

absl::Status CancellableStore::Set(const std::string& key, const std::string& value,
                                   int64_t reads) {
  return cancelled_ ? CancelledAt(key) : store_->Set(key, value, reads);
}

absl::StatusOr<std::string> CancellableStore::Get(const std::string& key, absl::Duration timeout) {
  const absl::Time deadline = absl::Now() + timeout;
  while (!cancelled_) {
    const absl::Duration left = std::max(deadline - absl::Now(), absl::ZeroDuration());
    absl::StatusOr<std::string> got = store_->Get(key, std::min(left, kSlice));
    if (left <= kSlice || !absl::IsDeadlineExceeded(got.status())) return got;
  }
  return CancelledAt(key);
}

}  // namespace planc
