#include "runtime/process_group/descriptor_need.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/process_group/group_use.h"
#include "schemas/counted.h"
#include "schemas/fault.h"

namespace planc {
namespace {

constexpr int64_t kFiles = 32;
constexpr int64_t kSharedGroup = 1;  // its memory
constexpr int64_t kNetwork = 3;      // the thread that moves bytes of groups over TCP

bool OnOneMachine(const Plan& plan, const std::vector<int64_t>& members) {
  return std::all_of(members.begin(), members.end(), [&](int64_t member) {
    return member / plan.ranks_per_node == members.front() / plan.ranks_per_node;
  });
}

}  // namespace

DescriptorNeed DescriptorsOf(const Plan& plan, int64_t rank) {
  DescriptorNeed need;
  need.rank = rank;
  need.of_files = kFiles;
  const int64_t ranks = plan.mesh.WorldSize();
  if (ranks == 1) return need;
  need.of_store = kStoreConnectionsOfARank + (rank == 0 ? kStoreConnectionsOfARank * ranks : 0);
  bool network = false;
  for (const GroupConnection& connection : ConnectionsOf(plan, rank)) {
    const bool shared = OnOneMachine(plan, connection.membership.members);
    network = network || !shared;
    need.of_groups += shared ? kSharedGroup : connection.membership.size() - 1;
  }
  if (network) need.of_groups += kNetwork;
  return need;
}

DescriptorNeed MostDescriptors(const Plan& plan) {
  // Ranks of one stage use the same groups, so the first of each stage stands for all.
  DescriptorNeed most;
  const int64_t stages = plan.mesh[Axis::kPp];
  for (int64_t stage = 0; stage < stages; ++stage) {
    const DescriptorNeed need = DescriptorsOf(plan, stage * (plan.mesh.WorldSize() / stages));
    if (stage == 0 || need.total() > most.total()) most = need;
  }
  return most;
}

std::string NeedText(const DescriptorNeed& need) {
  return absl::StrCat("rank ", need.rank, " needs ", Counted(need.total(), "open file"), ": ",
                      Counted(need.of_store, "connection"), " to the store, ", need.of_groups,
                      " for its groups and ", need.of_files, " for data, logs and checkpoints");
}

absl::Status CheckDescriptors(const Plan& plan, int64_t rank, int64_t limit) {
  const DescriptorNeed need = DescriptorsOf(plan, rank);
  if (need.total() <= limit) return absl::OkStatus();
  return WithFault(absl::FailedPreconditionError(absl::StrCat(
                       NeedText(need), ", and this process may have ", limit,
                       ": raise the limit (ulimit -Hn; LimitNOFILE= of the scheduler's service)")),
                   Fault::kEnvironment);
}

}  // namespace planc
