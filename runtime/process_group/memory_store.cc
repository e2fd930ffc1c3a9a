#include "runtime/process_group/memory_store.h"

#include "absl/strings/str_cat.h"
#include "schemas/counted.h"

namespace planc {

namespace {

// Of the memory around a key and its value.
constexpr size_t kEntryBytes = 128;

}  // namespace

absl::Status KeyTable::Set(const std::string& key, const std::string& value, int64_t reads) {
  const auto entry = entries_.find(key);
  if (entry != entries_.end()) {
    return absl::AlreadyExistsError(absl::StrCat("store key ", key, " is already set"));
  }
  const size_t bytes = kEntryBytes + key.size() + value.size();
  if (bytes > most_bytes_ - bytes_) {
    return absl::ResourceExhaustedError(absl::StrCat("store key ", key, ": the store is full, ",
                                                     bytes_, " of ", Counted(most_bytes_, "byte"),
                                                     " wait to be read"));
  }
  bytes_ += bytes;
  entries_[key] = {value, reads};
  return absl::OkStatus();
}

std::optional<std::string> KeyTable::Read(const std::string& key) {
  const auto entry = entries_.find(key);
  if (entry == entries_.end()) return std::nullopt;
  std::string value = entry->second.value;
  if (entry->second.reads_left > 0 && --entry->second.reads_left == 0) {
    bytes_ -= kEntryBytes + key.size() + value.size();
    entries_.erase(entry);
  }
  return value;
}

absl::Status MemoryStore::Set(const std::string& key, const std::string& value, int64_t reads) {
  std::lock_guard<std::mutex> lock(mutex_);
  const absl::Status status = table_.Set(key, value, reads);
  changed_.notify_all();
  return status;
}

absl::StatusOr<std::string> MemoryStore::Get(const std::string& key, absl::Duration timeout) {
  std::unique_lock<std::mutex> lock(mutex_);
  std::optional<std::string> value;
  const bool found = changed_.wait_for(lock, absl::ToChronoMicroseconds(timeout), [&] {
    value = table_.Read(key);
    return value.has_value();
  });
  if (found) return *value;
  if (timeout == absl::ZeroDuration()) return absl::NotFoundError(key);
  return absl::DeadlineExceededError(
      absl::StrCat("store key ", key, " was not set within ", absl::FormatDuration(timeout)));
}

}  // namespace planc
