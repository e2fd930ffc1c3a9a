#ifndef PLANC_RUNTIME_PROCESS_GROUP_GLOO_GROUP_H_
#define PLANC_RUNTIME_PROCESS_GROUP_GLOO_GROUP_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "runtime/process_group/key_value_store.h"
#include "runtime/process_group/process_group.h"

namespace planc {

// This rank's end of the TCP network that its groups share; one thread that moves the bytes.
class GlooNetwork {
 public:
  // `address`: numeric address of this machine that its peers can reach. `secret`: what the members
  // of all groups prove to each other.
  static absl::StatusOr<std::shared_ptr<GlooNetwork>> Create(const std::string& address,
                                                             const std::string& secret);
  virtual ~GlooNetwork() = default;

  // Connects all members of a group with each other and returns one process group per entry of
  // `memberships`. Several entries share the connections: one that only sends and one that only
  // receives, each on its own thread. Every member calls this with the same `key`, unused before.
  // Errors: DeadlineExceeded, Unavailable.
  virtual absl::StatusOr<std::vector<std::unique_ptr<ProcessGroup>>> Connect(
      const std::string& key, const std::vector<GroupMembership>& memberships, KeyValueStore* store,
      absl::Duration connect_timeout, absl::Duration operation_timeout) = 0;
};

}  // namespace planc

#endif  // PLANC_RUNTIME_PROCESS_GROUP_GLOO_GROUP_H_
