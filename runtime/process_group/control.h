#ifndef PLANC_RUNTIME_PROCESS_GROUP_CONTROL_H_
#define PLANC_RUNTIME_PROCESS_GROUP_CONTROL_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "runtime/process_group/key_value_store.h"
#include "runtime/process_group/storage_watch.h"

namespace planc {

// Rare agreements among all ranks of a job (plan hash, checkpoint manifest, shut-down), outside the
// plan's collectives. O(world) messages, all through rank 0. Every rank calls the same functions
// with the same tags in the same order; one thread per object.
class Control {
 public:
  // Keys start with `prefix`. `timeout` bounds every wait.
  Control(std::shared_ptr<KeyValueStore> store, std::string prefix, int64_t rank,
          int64_t world_size, absl::Duration timeout);

  // From now on a wait that has exceeded its time goes on while ranks tell that their storage holds
  // them up, StorageWatch::kLongest at most; its error says what they told last. `background`:
  // what holds up their background threads counts, too. `watch` must outlive this object.
  void ExcuseBy(StorageWatch* watch, bool background) {
    storage_ = watch;
    background_ = background;
  }

  // Rank 0 receives every rank's value, by rank; the others receive an empty vector and do not
  // wait. Errors: DeadlineExceeded naming the ranks that did not come.
  absl::StatusOr<std::vector<std::string>> Gather(const std::string& tag, const std::string& value);
  // Every rank receives rank 0's value.
  absl::StatusOr<std::string> Broadcast(const std::string& tag, const std::string& value);
  // Ends when every rank has called it; fails on every rank when one does not come.
  absl::Status Barrier(const std::string& tag);
  // Ends when every rank called it with the same value. Errors: FailedPrecondition on every rank,
  // naming the ranks that differ from rank 0; `what` names the value, e.g. "plan hash".
  absl::Status AgreeOn(const std::string& what, const std::string& value);

  // Whether to stop after step `step`, the same answer on every rank for the same step.
  // `requested`: this rank was asked to stop (a signal); one rank is enough. The answer comes two
  // steps later at most. Called by every rank after each step. REQUIRES: no rank can end a step
  // before every rank has begun it (the loss is all-reduced).
  // `reason`: of this rank's request, for people.
  absl::StatusOr<bool> ShouldStop(int64_t step, bool requested, const std::string& reason = "");
  // Why the ranks stop, as the one that asked first said; empty before ShouldStop returns true.
  const std::string& stop_reason() const { return stop_reason_; }

  int64_t rank() const { return rank_; }
  int64_t world_size() const { return world_size_; }

 private:
  std::string Key(const std::string& tag, const std::string& part) const;
  int64_t NextUse(const std::string& tag);
  // What ranks told of storage since the last time; empty: nothing.
  std::string Excuse();
  // Get, which goes on while it is excused; adds what was told to `told`.
  absl::StatusOr<std::string> AwaitValue(const std::string& key, absl::Duration timeout,
                                         std::string* told);
  // What rank 0 has announced. Errors: Internal when it cannot be.
  absl::Status TakeStopStep(const std::string& announced, int64_t step);

  const std::shared_ptr<KeyValueStore> store_;
  const std::string prefix_;
  const int64_t rank_;
  const int64_t world_size_;
  const absl::Duration timeout_;
  StorageWatch* storage_ = nullptr;
  bool background_ = false;
  StorageWatch::Reader storage_reader_;
  std::map<std::string, int64_t> uses_;  // per tag, so that each use has its own keys
  bool stop_announced_ = false;
  int64_t stop_step_ = -1;
  std::string stop_reason_;
};

}  // namespace planc

#endif  // PLANC_RUNTIME_PROCESS_GROUP_CONTROL_H_
