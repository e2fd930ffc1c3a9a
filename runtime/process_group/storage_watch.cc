#include "runtime/process_group/storage_watch.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace planc {

StorageWatch::Call::Call(StorageWatch* watch, StorageUse use, const std::string& what)
    : watch_(watch), use_(use) {
  if (watch_ != nullptr) watch_->Begin(use_, what);
}

StorageWatch::Call::~Call() {
  if (watch_ != nullptr) watch_->End(use_);
}

StorageWatch::StorageWatch(Options options)
    : options_(std::move(options)), thread_([this] { Loop(); }) {}

StorageWatch::~StorageWatch() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void StorageWatch::Begin(StorageUse use, const std::string& what) {
  const absl::Time now = absl::Now();
  bool first = false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const int index = static_cast<int>(use);
    Busy& busy = busy_[index];
    first = !IsBusy(index, now);
    if (first) busy.since = now;
    ++busy.calls;
    busy.what = what;
    busy.call_began = now;
  }
  if (first) changed_.notify_all();
}

void StorageWatch::End(StorageUse use) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Busy& busy = busy_[static_cast<int>(use)];
  --busy.calls;
  busy.last_end = absl::Now();
}

// Calls that follow each other at once, as those that write one large file, are one business.
bool StorageWatch::IsBusy(int use, absl::Time now) const {
  const Busy& busy = busy_[use];
  return busy.calls > 0 || now - busy.last_end < options_.patience[use] / 8;
}

std::string StorageWatch::Due(int use, absl::Time now) {
  Busy& busy = busy_[use];
  if (!IsBusy(use, now) || now - busy.since < options_.patience[use] || now < busy.next_report) {
    return "";
  }
  busy.next_report = now + options_.patience[use] / 2;
  const absl::Time from = busy.calls > 0 ? busy.call_began : busy.since;
  return absl::StrCat("rank ", options_.rank, ": ", busy.what,
                      busy.calls > 0 ? " has taken " : " and others have taken ",
                      absl::FormatDuration(absl::Trunc(now - from, absl::Milliseconds(1))));
}

void StorageWatch::Loop() {
  const absl::Duration shortest =
      *std::min_element(options_.patience.begin(), options_.patience.end());
  const auto poll =
      absl::ToChronoNanoseconds(std::clamp(shortest / 8, absl::Milliseconds(1), absl::Seconds(5)));
  std::unique_lock<std::mutex> lock(mutex_);
  while (!closing_) {
    const absl::Time now = absl::Now();
    bool idle = true;
    std::array<std::string, kStorageUses> due;
    for (int use = 0; use < kStorageUses; ++use) {
      idle = idle && !IsBusy(use, now);
      due[use] = Due(use, now);
    }
    for (int use = 0; use < kStorageUses; ++use) {
      if (due[use].empty()) continue;
      int64_t number = busy_[use].reports;
      lock.unlock();
      KeyValueStore* const store = Store();
      // The keys of all ranks are one sequence: the next free one is taken.
      while (store != nullptr && absl::IsAlreadyExists(store->Set(Key(use, number), due[use]))) {
        ++number;
      }
      lock.lock();
      busy_[use].reports = number + 1;
    }
    if (closing_) return;
    if (idle) {
      changed_.wait(lock, [this] {
        return closing_ || std::any_of(busy_.begin(), busy_.end(),
                                       [](const Busy& busy) { return busy.calls > 0; });
      });
    } else {
      changed_.wait_for(lock, poll, [this] { return closing_; });
    }
  }
}

std::string StorageWatch::Key(int use, int64_t number) const {
  return absl::StrCat(options_.prefix, "/storage/", use, "/", number);
}

KeyValueStore* StorageWatch::Store() {
  const std::lock_guard<std::mutex> lock(store_mutex_);
  if (store_ == nullptr && options_.connect != nullptr) {
    absl::StatusOr<std::shared_ptr<KeyValueStore>> connected = options_.connect();
    if (connected.ok()) store_ = *std::move(connected);
  }
  return store_.get();
}

std::string StorageWatch::Told(StorageUse use, Reader* reader) {
  KeyValueStore* const store = Store();
  const int index = static_cast<int>(use);
  std::string latest;
  while (store != nullptr) {
    absl::StatusOr<std::string> got =
        store->Get(Key(index, reader->read[index]), absl::ZeroDuration());
    if (!got.ok()) break;
    latest = *std::move(got);
    ++reader->read[index];
  }
  return latest;
}

}  // namespace planc
