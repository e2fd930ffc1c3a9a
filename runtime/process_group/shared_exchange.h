#ifndef PLANC_RUNTIME_PROCESS_GROUP_SHARED_EXCHANGE_H_
#define PLANC_RUNTIME_PROCESS_GROUP_SHARED_EXCHANGE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "runtime/process_group/process_group.h"
#include "runtime/process_group/shared_bell.h"
#include "runtime/process_group/shared_ring.h"
#include "runtime/process_group/shared_segment.h"

namespace planc {

// One member's end of the shared memory of a group: rounds, in which every member shows one slot to
// all others, and messages from one member to another. Waits for slots, and ends that waiting when
// the awaited member is gone, the time is over or the group was aborted.
//
// One thread uses it; Abort may come from any. An error is final and makes this member absent.
class SharedExchange {
 public:
  // Of one member's part in a round, and of one piece of a message.
  static constexpr int64_t kSlotBytes = 256 << 10;
  static constexpr int64_t kPieceBytes = 64 << 10;
  // Of a group: the memory for messages grows with their square.
  static constexpr int64_t kMostMembers = 256;

  // Shared memory that a group of `members` needs, mapped but not used before a slot is.
  static int64_t Bytes(int64_t members);

  // `segment`: of Bytes(membership.size()).
  SharedExchange(std::unique_ptr<SharedSegment> segment, GroupMembership membership,
                 absl::Duration timeout);
  ~SharedExchange() { Leave(); }

  const GroupMembership& membership() const { return membership_; }

  // Begins an operation, whose time starts to run. `operation` is a literal, for messages; `call`
  // tells apart calls that do not belong together: the members must agree on it.
  absl::Status Begin(const char* operation, uint64_t call);
  void Abort(const std::string& reason);
  int64_t AwaitedRank() const { return awaited_rank_.load(std::memory_order_relaxed); }

  // The own slot of the next round, once everybody has released it, and its publication.
  absl::StatusOr<uint8_t*> NextSlot();
  void Publish();
  // A member's slot in the oldest round that is not released, once it is published.
  absl::StatusOr<const uint8_t*> SlotOf(int64_t member);
  // Gives up the slots of that round.
  void Release();

  // The next piece of the message to `peer`, and its publication.
  absl::StatusOr<uint8_t*> NextPieceTo(int64_t peer);
  void PublishTo(int64_t peer);
  // The next piece of the message from `peer`, and giving it up.
  absl::StatusOr<const uint8_t*> NextPieceFrom(int64_t peer);
  void ReleaseFrom(int64_t peer);
  // Waits until `peer` has given up every piece.
  absl::Status WaitUntilRead(int64_t peer);

 private:
  // Messages between this member and another one.
  struct Pipe {
    SharedRing out;
    SharedRing in;
    uint64_t sent = 0;
    uint64_t received = 0;
  };

  SharedRing MessageRing(int64_t from, int64_t to) const;
  template <typename Ready>
  absl::Status WaitFor(int64_t member, Ready ready);
  template <typename Ready>
  absl::Status SleepUntil(int64_t member, Ready ready);
  absl::Status Check(const SharedRing& ring, uint64_t round, int64_t member);
  absl::Status Fail(int64_t member);
  void Leave();

  const GroupMembership membership_;
  const absl::Duration timeout_;
  const std::unique_ptr<SharedSegment> segment_;
  SharedBell* const bells_;        // by member
  std::vector<SharedRing> rings_;  // of the rounds, by the member that writes
  std::vector<Pipe> pipes_;        // by peer
  uint64_t published_ = 0;         // rounds
  uint64_t released_ = 0;
  const char* operation_ = "start";
  uint64_t call_ = 0;
  absl::Time deadline_;
  absl::Status failure_;
  std::atomic<int64_t> awaited_rank_{-1};

  std::mutex abort_mutex_;  // of abort_reason_
  std::atomic<bool> aborted_{false};
  std::string abort_reason_;
};

}  // namespace planc

#endif  // PLANC_RUNTIME_PROCESS_GROUP_SHARED_EXCHANGE_H_
