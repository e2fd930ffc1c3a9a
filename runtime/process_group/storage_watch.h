#ifndef PLANC_RUNTIME_PROCESS_GROUP_STORAGE_WATCH_H_
#define PLANC_RUNTIME_PROCESS_GROUP_STORAGE_WATCH_H_

#include <array>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "runtime/process_group/key_value_store.h"

namespace planc {

// Who is held up by a file that is slow.
enum class StorageUse : uint8_t {
  kForeground,  // the thread that runs the steps: the other ranks wait for it in the next one
  kBackground,  // the one that writes checkpoints beside it
};
inline constexpr int kStorageUses = 2;

// What ranks tell each other about storage, so that one whose disk is slow is not taken for dead.
// A rank that has been busy with files for its patience says so through the job's store, again and
// again until it is done; ranks whose wait has exceeded its time ask for that before they give up.
// Thread-safe.
class StorageWatch {
 public:
  using Connect = std::function<absl::StatusOr<std::shared_ptr<KeyValueStore>>()>;
  struct Options {
    Connect connect;     // to the store, called when there is something to tell or to ask
    std::string prefix;  // of keys
    int64_t rank = 0;
    // By StorageUse: at most a quarter of the time after which others give up.
    std::array<absl::Duration, kStorageUses> patience;
  };
  // How long a wait may go on in all because of storage.
  static constexpr absl::Duration kLongest = absl::Hours(1);

  explicit StorageWatch(Options options);
  ~StorageWatch();
  StorageWatch(const StorageWatch&) = delete;
  StorageWatch& operator=(const StorageWatch&) = delete;

  // While one exists, this rank is in a call about a file.
  class Call {
   public:
    // `watch` may be null. `what`: "sync of runs/demo/checkpoints/...".
    Call(StorageWatch* watch, StorageUse use, const std::string& what);
    ~Call();
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

   private:
    StorageWatch* const watch_;
    const StorageUse use_;
  };

  // Where a reader stands among what ranks have told; each has one of its own.
  struct Reader {
    std::array<int64_t, kStorageUses> read{};
  };
  // What a rank has told since `reader` asked last, "rank 0: fsync of F has taken 45s"; empty when
  // none has told anything, or the store is gone.
  std::string Told(StorageUse use, Reader* reader);

 private:
  // Of one use of this rank.
  struct Busy {
    int calls = 0;     // that have not ended
    std::string what;  // of the latest
    absl::Time call_began;
    absl::Time since;  // calls have followed each other
    absl::Time last_end = absl::InfinitePast();
    absl::Time next_report = absl::InfinitePast();
    int64_t reports = 0;  // keys that are known to be taken
  };

  void Begin(StorageUse use, const std::string& what);
  void End(StorageUse use);
  void Loop();
  // What is to be told of one use now; empty: nothing.
  std::string Due(int use, absl::Time now);
  bool IsBusy(int use, absl::Time now) const;
  std::string Key(int use, int64_t number) const;
  KeyValueStore* Store();

  const Options options_;
  std::mutex store_mutex_;
  std::shared_ptr<KeyValueStore> store_;  // guarded by store_mutex_

  std::mutex mutex_;
  std::condition_variable changed_;
  std::array<Busy, kStorageUses> busy_;  // guarded by mutex_, as is closing_
  bool closing_ = false;
  std::thread thread_;
};

}  // namespace planc

#endif  // PLANC_RUNTIME_PROCESS_GROUP_STORAGE_WATCH_H_
