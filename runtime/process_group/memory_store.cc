#include "runtime/process_group/memory_store.h"

#include "absl/strings/str_cat.h"

namespace planc {

absl::Status KeyTable::Set(const std::string& key, const std::string& value, int64_t reads) {
  if (!entries_.emplace(key, Entry{value, reads}).second) {
    return absl::AlreadyExistsError(absl::StrCat("store key ", key, " is already set"));
  }
  return absl::OkStatus();
}

std::optional<std::string> KeyTable::Read(const std::string& key) {
  const auto entry = entries_.find(key);
  if (entry == entries_.end()) return std::nullopt;
  std::string value = entry->second.value;
  if (entry->second.reads_left > 0 && --entry->second.reads_left == 0) entries_.erase(entry);
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
