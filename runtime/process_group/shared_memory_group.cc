#include "runtime/process_group/shared_memory_group.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "runtime/process_group/group_checks.h"
#include "runtime/process_group/ordered_reduce.h"
#include "runtime/process_group/shared_exchange.h"
#include "runtime/process_group/stream_copy.h"
#include "schemas/collective.h"
#include "schemas/status.h"

namespace planc {
namespace {

constexpr int64_t kCacheLine = 64;

const uint8_t* At(const void* base, int64_t bytes) {
  return static_cast<const uint8_t*>(base) + bytes;
}

uint8_t* At(void* base, int64_t bytes) { return static_cast<uint8_t*>(base) + bytes; }

// Tells calls apart that do not belong together.
enum class CallKind : uint64_t { kAllReduce, kReduceScatter, kAllGather, kMessage, kBarrier };

uint64_t CallOf(CallKind kind, int64_t bytes) {
  return static_cast<uint64_t>(kind) << 56 | static_cast<uint64_t>(bytes);
}

class SharedMemoryGroup : public ProcessGroup {
 public:
  SharedMemoryGroup(std::unique_ptr<SharedSegment> segment, const GroupMembership& membership,
                    absl::Duration timeout)
      : exchange_(std::move(segment), membership, timeout), inputs_(membership.size()) {}

  const GroupMembership& membership() const override { return exchange_.membership(); }
  const char* transport() const override { return "shared memory"; }

  absl::Status RegisterMemory(void* base, int64_t bytes) override {
    memory_.Add(base, bytes);
    return absl::OkStatus();
  }

  absl::Status AllReduce(void* x, int64_t count, DType dtype, ReduceOp op, void* scratch) override;
  absl::Status ReduceScatter(const void* x, void* y, int64_t count, DType dtype,
                             void* scratch) override;
  absl::Status AllGather(const void* x, void* y, int64_t count, DType dtype) override;
  absl::Status Send(int64_t peer, const void* x, int64_t bytes) override;
  absl::Status Receive(int64_t peer, void* x, int64_t bytes) override;
  absl::Status Barrier() override;
  int64_t AwaitedRank() const override { return exchange_.AwaitedRank(); }
  void Abort(const std::string& reason) override { exchange_.Abort(reason); }

 private:
  int64_t size() const { return membership().size(); }
  int64_t self() const { return membership().index; }
  // Bytes of a slot for one member when it holds something for each.
  int64_t PartBytes() const {
    return SharedExchange::kSlotBytes / size() / kCacheLine * kCacheLine;
  }

  absl::Status CheckMemory(const char* operation, const void* data, int64_t bytes) const {
    return memory_.Check(membership(), operation, data, bytes);
  }
  absl::Status BeginMessage(const char* operation, int64_t peer, const void* x, int64_t bytes);
  absl::Status Reduce(ReduceOp op, DType dtype, const void* own, int64_t part, void* out,
                      int64_t count);
  absl::Status AllReduceDirect(void* x, int64_t count, DType dtype, ReduceOp op);
  absl::Status AllReduceInBlocks(void* x, int64_t count, DType dtype, ReduceOp op);

  SharedExchange exchange_;
  RegisteredMemory memory_;
  std::vector<const void*> inputs_;  // of the sum in progress, by member
};

// Reduces `own` with what the others have shown at `part` bytes of their slots, and releases those.
absl::Status SharedMemoryGroup::Reduce(ReduceOp op, DType dtype, const void* own, int64_t part,
                                       void* out, int64_t count) {
  for (int64_t member = 0; member < size(); ++member) {
    if (member == self()) {
      inputs_[member] = own;
      continue;
    }
    PLANC_ASSIGN_OR_RETURN(const uint8_t* const slot, exchange_.SlotOf(member));
    inputs_[member] = slot + part;
  }
  if (count > 0) OrderedReduce(op, dtype, inputs_.data(), size(), out, count);
  exchange_.Release();
  return absl::OkStatus();
}

absl::Status SharedMemoryGroup::AllReduce(void* x, int64_t count, DType dtype, ReduceOp op,
                                          void* /*scratch*/) {
  constexpr char kOperation[] = "all_reduce";
  PLANC_RETURN_IF_ERROR(CheckReducible(membership(), kOperation, dtype));
  const int64_t bytes = count * SizeOf(dtype);
  PLANC_RETURN_IF_ERROR(exchange_.Begin(kOperation, CallOf(CallKind::kAllReduce, bytes)));
  if (size() == 1 || count == 0) return absl::OkStatus();
  PLANC_RETURN_IF_ERROR(CheckMemory(kOperation, x, bytes));
  return AllReduceIsDirect(count, SizeOf(dtype)) ? AllReduceDirect(x, count, dtype, op)
                                                 : AllReduceInBlocks(x, count, dtype, op);
}

// Everybody shows everything and adds everything up.
absl::Status SharedMemoryGroup::AllReduceDirect(void* x, int64_t count, DType dtype, ReduceOp op) {
  static_assert(kDirectAllReduceBytes <= SharedExchange::kSlotBytes, "one round");
  PLANC_ASSIGN_OR_RETURN(uint8_t* const slot, exchange_.NextSlot());
  std::memcpy(slot, x, count * SizeOf(dtype));
  exchange_.Publish();
  return Reduce(op, dtype, x, 0, x, count);
}

// In blocks, every member reduces its part and shows the result. A block's parts are shown before
// the previous block is reduced, and its results while the next one is: nobody waits for somebody
// who is no more than a block behind.
absl::Status SharedMemoryGroup::AllReduceInBlocks(void* x, int64_t count, DType dtype,
                                                  ReduceOp op) {
  const int64_t element = SizeOf(dtype);
  const int64_t block = PartBytes() / element * size();
  const int64_t blocks = ChunkElements(count, block);
  struct Part {
    uint8_t* data;
    int64_t elements;
  };
  const auto part_of = [&](int64_t index, int64_t member) -> Part {
    const int64_t begin = index * block;
    const int64_t end = std::min(begin + block, count);
    const int64_t chunk = ChunkElements(end - begin, size());
    const int64_t first = std::min(begin + member * chunk, end);
    return {At(x, first * element), std::min(first + chunk, end) - first};
  };
  const auto show_parts = [&](int64_t index) -> absl::Status {
    PLANC_ASSIGN_OR_RETURN(uint8_t* const slot, exchange_.NextSlot());
    for (int64_t member = 0; member < size(); ++member) {
      const Part part = part_of(index, member);
      if (member == self()) continue;
      StreamCopy(slot + member * PartBytes(), part.data, part.elements * element);
    }
    exchange_.Publish();
    return absl::OkStatus();
  };
  const auto reduce_own_part = [&](int64_t index) -> absl::Status {
    const Part part = part_of(index, self());
    PLANC_RETURN_IF_ERROR(
        Reduce(op, dtype, part.data, self() * PartBytes(), part.data, part.elements));
    PLANC_ASSIGN_OR_RETURN(uint8_t* const slot, exchange_.NextSlot());
    StreamCopy(slot, part.data, part.elements * element);
    exchange_.Publish();
    return absl::OkStatus();
  };
  const auto take_results = [&](int64_t index) -> absl::Status {
    for (int64_t step = 1; step < size(); ++step) {
      const int64_t member = (self() + step) % size();
      const Part part = part_of(index, member);
      PLANC_ASSIGN_OR_RETURN(const uint8_t* const slot, exchange_.SlotOf(member));
      std::memcpy(part.data, slot, part.elements * element);
    }
    exchange_.Release();
    return absl::OkStatus();
  };

  PLANC_RETURN_IF_ERROR(show_parts(0));
  for (int64_t index = 0; index < blocks; ++index) {
    if (index + 1 < blocks) PLANC_RETURN_IF_ERROR(show_parts(index + 1));
    PLANC_RETURN_IF_ERROR(reduce_own_part(index));
    if (index > 0) PLANC_RETURN_IF_ERROR(take_results(index - 1));
  }
  return take_results(blocks - 1);
}

absl::Status SharedMemoryGroup::ReduceScatter(const void* x, void* y, int64_t count, DType dtype,
                                              void* /*scratch*/) {
  constexpr char kOperation[] = "reduce_scatter";
  PLANC_RETURN_IF_ERROR(CheckReducible(membership(), kOperation, dtype));
  const int64_t element = SizeOf(dtype);
  const int64_t bytes = count * element;
  PLANC_RETURN_IF_ERROR(exchange_.Begin(kOperation, CallOf(CallKind::kReduceScatter, bytes)));
  if (count == 0) return absl::OkStatus();
  PLANC_RETURN_IF_ERROR(CheckMemory(kOperation, x, size() * bytes));
  PLANC_RETURN_IF_ERROR(CheckMemory(kOperation, y, bytes));
  const int64_t block = PartBytes() / element;
  const int64_t blocks = ChunkElements(count, block);
  const auto length = [&](int64_t index) { return std::min(block, count - index * block); };
  const auto show_parts = [&](int64_t index) -> absl::Status {
    PLANC_ASSIGN_OR_RETURN(uint8_t* const slot, exchange_.NextSlot());
    for (int64_t member = 0; member < size(); ++member) {
      if (member == self()) continue;
      StreamCopy(slot + member * PartBytes(), At(x, member * bytes + index * block * element),
                 length(index) * element);
    }
    exchange_.Publish();
    return absl::OkStatus();
  };
  PLANC_RETURN_IF_ERROR(show_parts(0));
  for (int64_t index = 0; index < blocks; ++index) {
    if (index + 1 < blocks) PLANC_RETURN_IF_ERROR(show_parts(index + 1));
    const int64_t begin = index * block * element;
    PLANC_RETURN_IF_ERROR(Reduce(ReduceOp::kSum, dtype, At(x, self() * bytes + begin),
                                 self() * PartBytes(), At(y, begin), length(index)));
  }
  return absl::OkStatus();
}

absl::Status SharedMemoryGroup::AllGather(const void* x, void* y, int64_t count, DType dtype) {
  constexpr char kOperation[] = "all_gather";
  const int64_t bytes = count * SizeOf(dtype);
  PLANC_RETURN_IF_ERROR(exchange_.Begin(kOperation, CallOf(CallKind::kAllGather, bytes)));
  if (count == 0) return absl::OkStatus();
  PLANC_RETURN_IF_ERROR(CheckMemory(kOperation, x, bytes));
  PLANC_RETURN_IF_ERROR(CheckMemory(kOperation, y, size() * bytes));
  constexpr int64_t kBlock = SharedExchange::kSlotBytes;
  const auto length = [&](int64_t begin) { return std::min(kBlock, bytes - begin); };
  const auto show = [&](int64_t begin) -> absl::Status {
    PLANC_ASSIGN_OR_RETURN(uint8_t* const slot, exchange_.NextSlot());
    StreamCopy(slot, At(x, begin), length(begin));
    exchange_.Publish();
    return absl::OkStatus();
  };
  PLANC_RETURN_IF_ERROR(show(0));
  for (int64_t begin = 0; begin < bytes; begin += kBlock) {
    if (begin + kBlock < bytes) PLANC_RETURN_IF_ERROR(show(begin + kBlock));
    for (int64_t step = 1; step < size(); ++step) {
      const int64_t member = (self() + step) % size();
      PLANC_ASSIGN_OR_RETURN(const uint8_t* const slot, exchange_.SlotOf(member));
      StreamCopy(At(y, member * bytes + begin), slot, length(begin));
    }
    exchange_.Release();
  }
  if (At(y, self() * bytes) != x) StreamCopy(At(y, self() * bytes), x, bytes);
  return absl::OkStatus();
}

absl::Status SharedMemoryGroup::BeginMessage(const char* operation, int64_t peer, const void* x,
                                             int64_t bytes) {
  PLANC_RETURN_IF_ERROR(CheckPeer(membership(), operation, peer));
  PLANC_RETURN_IF_ERROR(exchange_.Begin(operation, CallOf(CallKind::kMessage, bytes)));
  return CheckMemory(operation, x, bytes);
}

absl::Status SharedMemoryGroup::Send(int64_t peer, const void* x, int64_t bytes) {
  PLANC_RETURN_IF_ERROR(BeginMessage("send", peer, x, bytes));
  constexpr int64_t kPiece = SharedExchange::kPieceBytes;
  int64_t begin = 0;
  do {
    PLANC_ASSIGN_OR_RETURN(uint8_t* const piece, exchange_.NextPieceTo(peer));
    StreamCopy(piece, At(x, begin), std::min(kPiece, bytes - begin));
    exchange_.PublishTo(peer);
    begin += kPiece;
  } while (begin < bytes);
  return exchange_.WaitUntilRead(peer);
}

absl::Status SharedMemoryGroup::Receive(int64_t peer, void* x, int64_t bytes) {
  PLANC_RETURN_IF_ERROR(BeginMessage("receive", peer, x, bytes));
  constexpr int64_t kPiece = SharedExchange::kPieceBytes;
  int64_t begin = 0;
  do {
    PLANC_ASSIGN_OR_RETURN(const uint8_t* const piece, exchange_.NextPieceFrom(peer));
    std::memcpy(At(x, begin), piece, std::min(kPiece, bytes - begin));
    exchange_.ReleaseFrom(peer);
    begin += kPiece;
  } while (begin < bytes);
  return absl::OkStatus();
}

absl::Status SharedMemoryGroup::Barrier() {
  PLANC_RETURN_IF_ERROR(exchange_.Begin("barrier", CallOf(CallKind::kBarrier, 0)));
  PLANC_RETURN_IF_ERROR(exchange_.NextSlot().status());
  exchange_.Publish();
  for (int64_t member = 0; member < size(); ++member) {
    if (member != self()) PLANC_RETURN_IF_ERROR(exchange_.SlotOf(member).status());
  }
  exchange_.Release();
  return absl::OkStatus();
}

}  // namespace

std::unique_ptr<ProcessGroup> CreateSharedMemoryGroup(std::unique_ptr<SharedSegment> segment,
                                                      const GroupMembership& membership,
                                                      absl::Duration operation_timeout) {
  return std::make_unique<SharedMemoryGroup>(std::move(segment), membership, operation_timeout);
}

}  // namespace planc
