#ifndef PLANC_RUNTIME_PROCESS_GROUP_KEY_VALUE_STORE_H_
#define PLANC_RUNTIME_PROCESS_GROUP_KEY_VALUE_STORE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace planc {

// A small store that all ranks of a job share, for start-up and rare control messages. Thread-safe.
class KeyValueStore {
 public:
  virtual ~KeyValueStore() = default;

  // Writes a value that may be read `reads` times and is then forgotten; 0 means for ever.
  // Errors: AlreadyExists when the key has a value (keys are written once).
  virtual absl::Status Set(const std::string& key, const std::string& value, int64_t reads = 0) = 0;

  // Waits until the key has a value. Errors: DeadlineExceeded naming the key; Unavailable when the
  // store is gone. A zero timeout asks without waiting: NotFound when there is no value.
  virtual absl::StatusOr<std::string> Get(const std::string& key, absl::Duration timeout) = 0;
};

}  // namespace planc

#endif  // PLANC_RUNTIME_PROCESS_GROUP_KEY_VALUE_STORE_H_
