#ifndef PLANC_RUNTIME_PROCESS_GROUP_DESCRIPTOR_NEED_H_
#define PLANC_RUNTIME_PROCESS_GROUP_DESCRIPTOR_NEED_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "schemas/plan.h"

namespace planc {

// Connections of one rank to the store: of its step, of its background thread, and of what it tells
// about storage.
inline constexpr int64_t kStoreConnectionsOfARank = 3;

// The files that one rank has open at once.
struct DescriptorNeed {
  int64_t rank = 0;
  int64_t of_store = 0;   // rank 0 serves it to all ranks
  int64_t of_groups = 0;  // over TCP where members are on several machines, else shared memory
  int64_t of_files = 0;   // logs, data, metrics, checkpoints, libraries: an upper bound

  int64_t total() const { return of_store + of_groups + of_files; }
};
DescriptorNeed DescriptorsOf(const Plan& plan, int64_t rank);

// Of the rank that needs most.
DescriptorNeed MostDescriptors(const Plan& plan);

// "rank 0 needs 30,041 open files: 30,003 connections to the store, ...".
std::string NeedText(const DescriptorNeed& need);

// FailedPrecondition with the numbers when this process may not open what its rank needs.
absl::Status CheckDescriptors(const Plan& plan, int64_t rank, int64_t limit);

}  // namespace planc

#endif  // PLANC_RUNTIME_PROCESS_GROUP_DESCRIPTOR_NEED_H_
