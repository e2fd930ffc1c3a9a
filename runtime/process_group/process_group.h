#ifndef PLANC_RUNTIME_PROCESS_GROUP_PROCESS_GROUP_H_
#define PLANC_RUNTIME_PROCESS_GROUP_PROCESS_GROUP_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "schemas/dtype.h"

namespace planc {

enum class ReduceOp : uint8_t { kSum, kMax };

// Who takes part in a process group.
struct GroupMembership {
  std::string name;              // for messages: group kind and stream, e.g. "dp_shard/dp"
  std::vector<int64_t> members;  // global ranks, ascending
  int64_t index = 0;             // this rank's position in `members`

  int64_t size() const { return static_cast<int64_t>(members.size()); }
};

// The communication of one group kind on one stream of this rank. Calls are made by that stream's
// thread only and block until this rank's part is done; Abort may come from any thread. Every
// member makes the same calls in the same order with the same sizes, which the plan's verifier has
// proven.
//
// Sums are ((x0 + x1) + x2) + ... in member order, whatever the timing: f32 in f32, f64 in f64,
// bf16 in f32 and rounded once. A maximum is NaN when any input is NaN. Other dtypes are
// InvalidArgument.
//
// Memory given to a call must lie in registered memory. Calls allocate nothing, but for Gloo (TCP),
// which keeps books of each message on the heap.
//
// Errors: Unavailable (a peer is gone), DeadlineExceeded (a peer did not come in time) and Aborted
// name the group, its ranks, the operation and, where known, the peer. They are final: every later
// call returns the same status.
class ProcessGroup {
 public:
  virtual ~ProcessGroup() = default;

  virtual const GroupMembership& membership() const = 0;

  // How the members reach each other, for messages: "shared memory", "TCP".
  virtual const char* transport() const = 0;

  // Announces memory that operations will use. Called before the first operation, for each arena.
  virtual absl::Status RegisterMemory(void* base, int64_t bytes) = 0;

  // x[count] = sum or maximum over the members' x, in place, same bits on every member.
  // `scratch` has AllReduceScratchBytes of schemas/collective.h; disjoint from x.
  virtual absl::Status AllReduce(void* x, int64_t count, DType dtype, ReduceOp op,
                                 void* scratch) = 0;

  // y[count] = this member's chunk of the sum over the members' x[size * count]. y is disjoint from
  // x, or is exactly this member's chunk of x. `scratch` has ReduceScatterScratchBytes, disjoint
  // from both.
  virtual absl::Status ReduceScatter(const void* x, void* y, int64_t count, DType dtype,
                                     void* scratch) = 0;

  // y[size * count] = the members' x[count] in member order. x is disjoint from y, or is exactly
  // this member's chunk of y.
  virtual absl::Status AllGather(const void* x, void* y, int64_t count, DType dtype) = 0;

  // Gives `bytes` to member `peer`'s matching Receive; ends no earlier than that Receive was
  // called.
  virtual absl::Status Send(int64_t peer, const void* x, int64_t bytes) = 0;
  virtual absl::Status Receive(int64_t peer, void* x, int64_t bytes) = 0;

  // Ends when every member has called it.
  virtual absl::Status Barrier() = 0;

  // The rank whose message a blocked call waits for right now; -1 when there is none or it is not
  // known. Thread-safe.
  virtual int64_t AwaitedRank() const { return -1; }

  // Wakes a blocked call and makes it and all later calls return Aborted with `reason`. Peers see
  // this member as lost.
  virtual void Abort(const std::string& reason) = 0;
};

}  // namespace planc

#endif  // PLANC_RUNTIME_PROCESS_GROUP_PROCESS_GROUP_H_
