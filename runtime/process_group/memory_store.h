#ifndef PLANC_RUNTIME_PROCESS_GROUP_MEMORY_STORE_H_
#define PLANC_RUNTIME_PROCESS_GROUP_MEMORY_STORE_H_

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "runtime/process_group/key_value_store.h"

namespace planc {

// The keys of a store and their values, with KeyValueStore's rules. Not thread-safe.
class KeyTable {
 public:
  KeyTable() = default;
  // `most_bytes`: of all keys and values.
  explicit KeyTable(size_t most_bytes) : most_bytes_(most_bytes) {}

  // Errors beyond KeyValueStore's: ResourceExhausted when the table is full.
  absl::Status Set(const std::string& key, const std::string& value, int64_t reads);
  // Counts as one read when there is a value.
  std::optional<std::string> Read(const std::string& key);

 private:
  struct Entry {
    std::string value;
    int64_t reads_left = 0;  // 0: any number
  };
  const size_t most_bytes_ = std::numeric_limits<size_t>::max();
  size_t bytes_ = 0;  // of all entries
  std::map<std::string, Entry> entries_;
};

// A store for ranks that are threads of one process.
class MemoryStore : public KeyValueStore {
 public:
  absl::Status Set(const std::string& key, const std::string& value, int64_t reads = 0) override;
  absl::StatusOr<std::string> Get(const std::string& key, absl::Duration timeout) override;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  KeyTable table_;
};

}  // namespace planc

#endif  // PLANC_RUNTIME_PROCESS_GROUP_MEMORY_STORE_H_
