#ifndef PLANC_RUNTIME_PROCESS_GROUP_CANCELLABLE_STORE_H_
#define PLANC_RUNTIME_PROCESS_GROUP_CANCELLABLE_STORE_H_

#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "runtime/process_group/key_value_store.h"

namespace planc {

// Another store whose waits can be ended from another thread: for a thread that must not outlive
// what it works for.
class CancellableStore : public KeyValueStore {
 public:
  explicit CancellableStore(std::shared_ptr<KeyValueStore> store) : store_(std::move(store)) {}

  // From now on every call fails with Cancelled; one that is waiting does so within half a second.
  void Cancel() { cancelled_ = true; }

  absl::Status Set(const std::string& key, const std::string& value, int64_t reads = 0) override;
  absl::StatusOr<std::string> Get(const std::string& key, absl::Duration timeout) override;

 private:
  const std::shared_ptr<KeyValueStore> store_;
  std::atomic<bool> cancelled_{false};
};

}  // namespace planc

#endif  // PLANC_RUNTIME_PROCESS_GROUP_CANCELLABLE_STORE_H_
