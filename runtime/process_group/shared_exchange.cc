#include "runtime/process_group/shared_exchange.h"

#include <immintrin.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "runtime/process_group/group_checks.h"
#include "schemas/status.h"

namespace planc {
namespace {

// A peer that is about to answer is met awake; one that is late is waited for asleep, so that the
// cores are free for those who compute.
constexpr int kSpins = 200;
// The death of a process rings no bell.
constexpr absl::Duration kLongestSleep = absl::Milliseconds(20);

int64_t BellBytes(int64_t members) { return members * static_cast<int64_t>(sizeof(SharedBell)); }

int64_t RoundRingBytes(int64_t members) {
  return SharedRing::Bytes(members, SharedExchange::kSlotBytes);
}

int64_t MessageRingBytes() { return SharedRing::Bytes(1, SharedExchange::kPieceBytes); }

}  // namespace

int64_t SharedExchange::Bytes(int64_t members) {
  return BellBytes(members) + members * RoundRingBytes(members) +
         members * members * MessageRingBytes();
}

SharedExchange::SharedExchange(std::unique_ptr<SharedSegment> segment, GroupMembership membership,
                               absl::Duration timeout)
    : membership_(std::move(membership)),
      timeout_(timeout),
      segment_(std::move(segment)),
      bells_(reinterpret_cast<SharedBell*>(segment_->memory())) {
  const int64_t members = membership_.size();
  uint8_t* const rings = segment_->memory() + BellBytes(members);
  for (int64_t member = 0; member < members; ++member) {
    rings_.emplace_back(rings + member * RoundRingBytes(members), members, kSlotBytes);
    pipes_.push_back(
        {MessageRing(membership_.index, member), MessageRing(member, membership_.index)});
  }
}

SharedRing SharedExchange::MessageRing(int64_t from, int64_t to) const {
  const int64_t members = membership_.size();
  const int64_t offset = BellBytes(members) + members * RoundRingBytes(members) +
                         (from * members + to) * MessageRingBytes();
  return SharedRing(segment_->memory() + offset, 1, kPieceBytes);
}

absl::Status SharedExchange::Begin(const char* operation, uint64_t call) {
  if (!failure_.ok()) return failure_;
  operation_ = operation;
  call_ = call;
  if (aborted_.load(std::memory_order_relaxed)) return Fail(-1);
  deadline_ = absl::Now() + timeout_;
  return absl::OkStatus();
}

absl::StatusOr<uint8_t*> SharedExchange::NextSlot() {
  SharedRing& ring = rings_[membership_.index];
  for (int64_t reader = 0; reader < membership_.size(); ++reader) {
    if (reader == membership_.index) continue;
    PLANC_RETURN_IF_ERROR(WaitFor(reader, [&] { return ring.IsFree(reader, published_); }));
  }
  return ring.Slot(published_);
}

void SharedExchange::Publish() {
  rings_[membership_.index].Publish(published_++, call_);
  for (int64_t member = 0; member < membership_.size(); ++member) {
    bells_[member].RingFrom(membership_.index);
  }
}

absl::StatusOr<const uint8_t*> SharedExchange::SlotOf(int64_t member) {
  const SharedRing& ring = rings_[member];
  PLANC_RETURN_IF_ERROR(WaitFor(member, [&] { return ring.IsFull(released_); }));
  PLANC_RETURN_IF_ERROR(Check(ring, released_, member));
  return ring.Slot(released_);
}

void SharedExchange::Release() {
  for (int64_t member = 0; member < membership_.size(); ++member) {
    if (member == membership_.index) continue;
    rings_[member].Release(membership_.index, released_);
    bells_[member].RingFrom(membership_.index);
  }
  ++released_;
}

absl::StatusOr<uint8_t*> SharedExchange::NextPieceTo(int64_t peer) {
  Pipe& pipe = pipes_[peer];
  PLANC_RETURN_IF_ERROR(WaitFor(peer, [&] { return pipe.out.IsFree(0, pipe.sent); }));
  return pipe.out.Slot(pipe.sent);
}

void SharedExchange::PublishTo(int64_t peer) {
  Pipe& pipe = pipes_[peer];
  pipe.out.Publish(pipe.sent++, call_);
  bells_[peer].RingFrom(membership_.index);
}

absl::StatusOr<const uint8_t*> SharedExchange::NextPieceFrom(int64_t peer) {
  Pipe& pipe = pipes_[peer];
  PLANC_RETURN_IF_ERROR(WaitFor(peer, [&] { return pipe.in.IsFull(pipe.received); }));
  PLANC_RETURN_IF_ERROR(Check(pipe.in, pipe.received, peer));
  return pipe.in.Slot(pipe.received);
}

void SharedExchange::ReleaseFrom(int64_t peer) {
  Pipe& pipe = pipes_[peer];
  pipe.in.Release(0, pipe.received++);
  bells_[peer].RingFrom(membership_.index);
}

absl::Status SharedExchange::WaitUntilRead(int64_t peer) {
  const Pipe& pipe = pipes_[peer];
  // A slot is free for the round after the next kSlots ones when all before are released.
  const uint64_t round = pipe.sent + SharedRing::kSlots - 1;
  return WaitFor(peer, [&] { return pipe.out.IsFree(0, round); });
}

template <typename Ready>
absl::Status SharedExchange::WaitFor(int64_t member, Ready ready) {
  if (ready()) return absl::OkStatus();
  awaited_rank_.store(membership_.members[member], std::memory_order_relaxed);
  for (int spin = 0; spin < kSpins; ++spin) {
    _mm_pause();
    if (ready()) break;
  }
  const absl::Status status = SleepUntil(member, ready);
  bells_[membership_.index].Awake();
  if (status.ok()) awaited_rank_.store(-1, std::memory_order_relaxed);
  return status;
}

template <typename Ready>
absl::Status SharedExchange::SleepUntil(int64_t member, Ready ready) {
  SharedBell& bell = bells_[membership_.index];
  while (!ready()) {
    const uint32_t expected = bell.Expect(member);
    if (ready()) break;
    if (aborted_.load() || absl::Now() >= deadline_) return Fail(member);
    // What a member has published before it left counts.
    if (!segment_->IsPresent(member)) return ready() ? absl::OkStatus() : Fail(member);
    bell.Sleep(expected, std::min(kLongestSleep, deadline_ - absl::Now()));
  }
  return absl::OkStatus();
}

absl::Status SharedExchange::Check(const SharedRing& ring, uint64_t round, int64_t member) {
  if (ring.Label(round) == call_) return absl::OkStatus();
  failure_ = absl::InternalError(absl::StrCat("group ", membership_.name, ": ", operation_,
                                              " on rank ", membership_.members[membership_.index],
                                              " meets another call on rank ",
                                              membership_.members[member]));
  Leave();
  return failure_;
}

absl::Status SharedExchange::Fail(int64_t member) {
  if (aborted_.load()) {
    std::lock_guard<std::mutex> lock(abort_mutex_);
    failure_ = AbortedCall(membership_, operation_, abort_reason_);
  } else if (absl::Now() >= deadline_) {
    failure_ = UnansweredCall(membership_, operation_, {membership_.members[member]}, timeout_);
  } else {
    std::vector<int64_t> lost;
    for (int64_t other = 0; other < membership_.size(); ++other) {
      if (!segment_->IsPresent(other)) lost.push_back(membership_.members[other]);
    }
    failure_ = LostPeers(membership_, operation_, lost);
  }
  // The peers must not wait for this member until their own time-out.
  Leave();
  return failure_;
}

void SharedExchange::Abort(const std::string& reason) {
  {
    std::lock_guard<std::mutex> lock(abort_mutex_);
    if (aborted_.load()) return;
    abort_reason_ = reason;
    aborted_.store(true);
  }
  Leave();
}

void SharedExchange::Leave() {
  segment_->Leave();
  for (int64_t member = 0; member < membership_.size(); ++member) bells_[member].Ring();
}

}  // namespace planc
