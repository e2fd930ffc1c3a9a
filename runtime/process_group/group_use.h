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

// Uses that share their connections and where this rank stands in them.
struct GroupConnection {
  std::string name;            // for messages and keys: "tp/compute", "pp/next", ...
  std::vector<GroupUse> uses;  // one, or the sending and the receiving stream of a channel
  GroupMembership membership;  // named after the connection
};

// What `rank` must connect so that its programs can run, ordered by group, then stream: the same,
// in the same order, for all members of a group. The streams of transfers come in pairs, send_next
// with recv_prev and send_prev with recv_next, for every rank of the pipeline as soon as one uses
// either.
std::vector<GroupConnection> ConnectionsOf(const Plan& plan, int64_t rank);

}  // namespace planc

#endif  // PLANC_RUNTIME_PROCESS_GROUP_GROUP_USE_H_
