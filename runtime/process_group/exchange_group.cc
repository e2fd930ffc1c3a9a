#include "runtime/process_group/exchange_group.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/process_group/group_checks.h"
#include "runtime/process_group/ordered_reduce.h"
#include "schemas/collective.h"
#include "schemas/status.h"

namespace planc {
namespace {

const uint8_t* At(const void* base, int64_t bytes) {
  return static_cast<const uint8_t*>(base) + bytes;
}

uint8_t* At(void* base, int64_t bytes) { return static_cast<uint8_t*>(base) + bytes; }

}  // namespace

ExchangeGroup::ExchangeGroup(GroupMembership membership)
    : membership_(std::move(membership)), inputs_(membership_.size()) {}

absl::Status ExchangeGroup::AllReduce(void* x, int64_t count, DType dtype, ReduceOp op,
                                      void* scratch) {
  PLANC_RETURN_IF_ERROR(CheckReducible(membership_, "all_reduce", dtype));
  PLANC_RETURN_IF_ERROR(Begin("all_reduce"));
  if (membership_.size() == 1 || count == 0) return absl::OkStatus();
  return AllReduceIsDirect(count, SizeOf(dtype)) ? AllReduceDirect(x, count, dtype, op, scratch)
                                                 : AllReduceChunked(x, count, dtype, op, scratch);
}

absl::Status ExchangeGroup::AllReduceDirect(void* x, int64_t count, DType dtype, ReduceOp op,
                                            void* scratch) {
  const int64_t bytes = count * SizeOf(dtype);
  uint8_t* received = At(scratch, 0);
  for (int64_t member = 0; member < membership_.size(); ++member) {
    inputs_[member] = x;
    if (member == membership_.index) continue;
    PLANC_RETURN_IF_ERROR(PostReceive(member, received, bytes));
    inputs_[member] = received;
    received += bytes;
  }
  for (int64_t member = 0; member < membership_.size(); ++member) {
    if (member != membership_.index) PLANC_RETURN_IF_ERROR(PostSend(member, x, bytes));
  }
  // x is read by the sends and written by the sum.
  PLANC_RETURN_IF_ERROR(WaitAll());
  OrderedReduce(op, dtype, inputs_.data(), membership_.size(), x, count);
  return absl::OkStatus();
}

absl::Status ExchangeGroup::AllReduceChunked(void* x, int64_t count, DType dtype, ReduceOp op,
                                             void* scratch) {
  const int64_t size = membership_.size();
  const int64_t self = membership_.index;
  const int64_t element = SizeOf(dtype);
  const int64_t chunk = ChunkElements(count, size);
  // The last chunks may be short or empty.
  const auto begin = [&](int64_t member) { return std::min(member * chunk, count); };
  const auto length = [&](int64_t member) { return begin(member + 1) - begin(member); };

  uint8_t* received = At(scratch, 0);
  for (int64_t member = 0; member < size; ++member) {
    inputs_[member] = At(x, begin(self) * element);
    if (member == self || length(self) == 0) continue;
    PLANC_RETURN_IF_ERROR(PostReceive(member, received, length(self) * element));
    inputs_[member] = received;
    received += length(self) * element;
  }
  // Each member starts with its successor, so that no member is everybody's first target.
  for (int64_t step = 1; step < size; ++step) {
    const int64_t member = (self + step) % size;
    if (length(member) == 0) continue;
    PLANC_RETURN_IF_ERROR(
        PostSend(member, At(x, begin(member) * element), length(member) * element));
  }
  PLANC_RETURN_IF_ERROR(WaitReceives());
  // The own chunk is sent to nobody in this round, so it may be written before the sends are done.
  OrderedReduce(op, dtype, inputs_.data(), size, At(x, begin(self) * element), length(self));
  // The gather writes the other chunks, which the sends read.
  PLANC_RETURN_IF_ERROR(WaitAll());

  for (int64_t member = 0; member < size; ++member) {
    if (member == self || length(member) == 0) continue;
    PLANC_RETURN_IF_ERROR(
        PostReceive(member, At(x, begin(member) * element), length(member) * element));
  }
  for (int64_t step = 1; step < size; ++step) {
    if (length(self) == 0) break;
    PLANC_RETURN_IF_ERROR(
        PostSend((self + step) % size, At(x, begin(self) * element), length(self) * element));
  }
  return WaitAll();
}

absl::Status ExchangeGroup::ReduceScatter(const void* x, void* y, int64_t count, DType dtype,
                                          void* scratch) {
  PLANC_RETURN_IF_ERROR(CheckReducible(membership_, "reduce_scatter", dtype));
  PLANC_RETURN_IF_ERROR(Begin("reduce_scatter"));
  if (count == 0) return absl::OkStatus();
  const int64_t size = membership_.size();
  const int64_t self = membership_.index;
  const int64_t bytes = count * SizeOf(dtype);
  uint8_t* received = At(scratch, 0);
  for (int64_t member = 0; member < size; ++member) {
    inputs_[member] = At(x, self * bytes);
    if (member == self) continue;
    PLANC_RETURN_IF_ERROR(PostReceive(member, received, bytes));
    inputs_[member] = received;
    received += bytes;
  }
  for (int64_t step = 1; step < size; ++step) {
    const int64_t member = (self + step) % size;
    PLANC_RETURN_IF_ERROR(PostSend(member, At(x, member * bytes), bytes));
  }
  PLANC_RETURN_IF_ERROR(WaitReceives());
  OrderedReduce(ReduceOp::kSum, dtype, inputs_.data(), size, y, count);
  return WaitAll();
}

absl::Status ExchangeGroup::AllGather(const void* x, void* y, int64_t count, DType dtype) {
  PLANC_RETURN_IF_ERROR(Begin("all_gather"));
  if (count == 0) return absl::OkStatus();
  const int64_t size = membership_.size();
  const int64_t self = membership_.index;
  const int64_t bytes = count * SizeOf(dtype);
  for (int64_t member = 0; member < size; ++member) {
    if (member == self) continue;
    PLANC_RETURN_IF_ERROR(PostReceive(member, At(y, member * bytes), bytes));
  }
  for (int64_t step = 1; step < size; ++step) {
    PLANC_RETURN_IF_ERROR(PostSend((self + step) % size, x, bytes));
  }
  if (At(y, self * bytes) != x) std::memcpy(At(y, self * bytes), x, bytes);
  return WaitAll();
}

absl::Status ExchangeGroup::Send(int64_t peer, const void* x, int64_t bytes) {
  PLANC_RETURN_IF_ERROR(CheckPeer(membership_, "send", peer));
  PLANC_RETURN_IF_ERROR(Begin("send"));
  PLANC_RETURN_IF_ERROR(PostSend(peer, x, bytes));
  return WaitAll();
}

absl::Status ExchangeGroup::Receive(int64_t peer, void* x, int64_t bytes) {
  PLANC_RETURN_IF_ERROR(CheckPeer(membership_, "receive", peer));
  PLANC_RETURN_IF_ERROR(Begin("receive"));
  PLANC_RETURN_IF_ERROR(PostReceive(peer, x, bytes));
  return WaitAll();
}

absl::Status ExchangeGroup::Barrier() {
  PLANC_RETURN_IF_ERROR(Begin("barrier"));
  uint8_t* const own = tokens() + membership_.index;
  for (int64_t member = 0; member < membership_.size(); ++member) {
    if (member == membership_.index) continue;
    PLANC_RETURN_IF_ERROR(PostReceive(member, tokens() + member, 1));
  }
  for (int64_t member = 0; member < membership_.size(); ++member) {
    if (member != membership_.index) PLANC_RETURN_IF_ERROR(PostSend(member, own, 1));
  }
  return WaitAll();
}

}  // namespace planc
