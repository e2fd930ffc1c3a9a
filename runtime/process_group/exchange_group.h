#ifndef PLANC_RUNTIME_PROCESS_GROUP_EXCHANGE_GROUP_H_
#define PLANC_RUNTIME_PROCESS_GROUP_EXCHANGE_GROUP_H_

#include <atomic>
#include <cstdint>
#include <vector>

#include "runtime/process_group/process_group.h"

namespace planc {

// The collectives, made of messages between pairs of members: every member sends each peer that
// peer's part directly, receives the parts of its own into scratch, and adds them in member order.
// A child class only moves messages.
//
// Small all-reduces exchange whole vectors (one round); large ones exchange chunks, then results
// (two rounds, 2/n of the bytes). schemas/collective.h says which is which.
class ExchangeGroup : public ProcessGroup {
 public:
  explicit ExchangeGroup(GroupMembership membership);

  const GroupMembership& membership() const override { return membership_; }
  absl::Status AllReduce(void* x, int64_t count, DType dtype, ReduceOp op, void* scratch) override;
  absl::Status ReduceScatter(const void* x, void* y, int64_t count, DType dtype,
                             void* scratch) override;
  absl::Status AllGather(const void* x, void* y, int64_t count, DType dtype) override;
  absl::Status Send(int64_t peer, const void* x, int64_t bytes) override;
  absl::Status Receive(int64_t peer, void* x, int64_t bytes) override;
  absl::Status Barrier() override;
  int64_t AwaitedRank() const override {
    const int64_t member = AwaitedMember();
    return member < 0 ? -1 : membership_.members[member];
  }

 protected:
  // Publishes the member whose message the child class waits for; -1: none.
  void Await(int64_t member) { awaited_.store(member, std::memory_order_relaxed); }
  int64_t AwaitedMember() const { return awaited_.load(std::memory_order_relaxed); }
  // Starts a new operation; `operation` is a literal, for messages. Returns the final error if the
  // group has failed.
  virtual absl::Status Begin(const char* operation) = 0;
  // Begins to move one message; messages from one member to another keep their order. The memory
  // belongs to the transport until WaitAll.
  virtual absl::Status PostSend(int64_t peer, const void* data, int64_t bytes) = 0;
  virtual absl::Status PostReceive(int64_t peer, void* data, int64_t bytes) = 0;
  // Waits for every posted receive, and for every posted receive and send.
  virtual absl::Status WaitReceives() = 0;
  virtual absl::Status WaitAll() = 0;
  // One byte for each member, in registered memory of the child class, for messages without data.
  virtual uint8_t* tokens() = 0;

 private:
  absl::Status AllReduceDirect(void* x, int64_t count, DType dtype, ReduceOp op, void* scratch);
  absl::Status AllReduceChunked(void* x, int64_t count, DType dtype, ReduceOp op, void* scratch);

  const GroupMembership membership_;
  std::atomic<int64_t> awaited_{-1};  // a member
  std::vector<const void*> inputs_;   // of the sum in progress, by member
};

}  // namespace planc

#endif  // PLANC_RUNTIME_PROCESS_GROUP_EXCHANGE_GROUP_H_
