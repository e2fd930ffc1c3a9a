#ifndef PLANC_RUNTIME_PROCESS_GROUP_GROUP_CHECKS_H_
#define PLANC_RUNTIME_PROCESS_GROUP_GROUP_CHECKS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "runtime/process_group/process_group.h"
#include "schemas/dtype.h"

namespace planc {

// What every kind of process group checks and says in the same words.

// "rank 3", "ranks 0, 4": the first eight of them.
std::string RankList(std::vector<int64_t> ranks);

// InvalidArgument unless sums and maxima of `dtype` exist.
absl::Status CheckReducible(const GroupMembership& membership, const char* operation, DType dtype);
// InvalidArgument unless `peer` is another member.
absl::Status CheckPeer(const GroupMembership& membership, const char* operation, int64_t peer);

// The final errors of a group, as ProcessGroup describes them.
absl::Status AbortedCall(const GroupMembership& membership, const char* operation,
                         const std::string& reason);
absl::Status UnansweredCall(const GroupMembership& membership, const char* operation,
                            const std::vector<int64_t>& ranks, absl::Duration timeout);
// `cause` is said when it is not known which ranks are lost.
absl::Status LostPeers(const GroupMembership& membership, const char* operation,
                       const std::vector<int64_t>& ranks, const std::string& cause = "");

// InvalidArgument: the call was given memory that was not registered.
absl::Status UnregisteredMemory(const GroupMembership& membership, const char* operation);

// The memory that operations may use.
class RegisteredMemory {
 public:
  void Add(const void* base, int64_t bytes);
  // UnregisteredMemory unless all of it lies in one range that was added.
  absl::Status Check(const GroupMembership& membership, const char* operation, const void* data,
                     int64_t bytes) const;

 private:
  struct Range {
    const uint8_t* base;
    int64_t bytes;
  };
  std::vector<Range> ranges_;
};

}  // namespace planc

#endif  // PLANC_RUNTIME_PROCESS_GROUP_GROUP_CHECKS_H_
