#ifndef PLANC_RUNTIME_PROCESS_GROUP_GROUP_USE_H_
#define PLANC_RUNTIME_PROCESS_GROUP_GROUP_USE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/process_group/process_group.h"
#include "schemas/plan.h"

namespace planc {

// A communicator that this rank needs: the plan's group `group` on `stream`.
struct GroupUse {
  int group = 0;
  Stream stream = Stream::kCompute;
  friend bool operator==(const GroupUse&, const GroupUse&) = default;
};

// A use and where this rank stands in its connection.
struct GroupConnection {
  std::string name;  // for messages and keys: "tp/compute", "pp/next 0 to 1", ...
  GroupUse use;
  GroupMembership membership;  // named after the connection
};

// What `rank` must connect so that its programs can run, ordered by group, then stream or pair of
// stages: the same, in the same order, for all members. A transfer between two stages has a
// connection of its own, made as soon as one of the two uses it: send_next meets recv_prev, and
// send_prev meets recv_next.
std::vector<GroupConnection> ConnectionsOf(const Plan& plan, int64_t rank);

}  // namespace planc

#endif  // PLANC_RUNTIME_PROCESS_GROUP_GROUP_USE_H_
