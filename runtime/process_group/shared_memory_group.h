#ifndef PLANC_RUNTIME_PROCESS_GROUP_SHARED_MEMORY_GROUP_H_
#define PLANC_RUNTIME_PROCESS_GROUP_SHARED_MEMORY_GROUP_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "runtime/process_group/key_value_store.h"
#include "runtime/process_group/process_group.h"
#include "runtime/process_group/shared_segment.h"

namespace planc {

// A group whose members exchange pieces that fit the processor's caches through memory that all of
// them map. A member may be a process or, in tests, a thread.
// `segment`: of SharedExchange::Bytes(members), with the member of this rank.
std::unique_ptr<ProcessGroup> CreateSharedMemoryGroup(std::unique_ptr<SharedSegment> segment,
                                                      const GroupMembership& membership,
                                                      absl::Duration operation_timeout);

// Connects a group whose members run on one machine. Every member calls this with the same `key`,
// unused before, and receives the same answer.
// Errors: FailedPrecondition with the reason when a member cannot reach the memory, so that another
// transport can be tried; DeadlineExceeded and Unavailable as those of `store`.
absl::StatusOr<std::unique_ptr<ProcessGroup>> ConnectSharedMemoryGroup(
    const std::string& key, const GroupMembership& membership, KeyValueStore* store,
    absl::Duration connect_timeout, absl::Duration operation_timeout);

}  // namespace planc

#endif  // PLANC_RUNTIME_PROCESS_GROUP_SHARED_MEMORY_GROUP_H_
