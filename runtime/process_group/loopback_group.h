#ifndef PLANC_RUNTIME_PROCESS_GROUP_LOOPBACK_GROUP_H_
#define PLANC_RUNTIME_PROCESS_GROUP_LOOPBACK_GROUP_H_

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "absl/time/time.h"
#include "runtime/process_group/key_value_store.h"
#include "runtime/process_group/process_group.h"

namespace planc {

class LoopbackChannel;

// The wires between ranks that are threads of one process: tests run a whole mesh without sockets.
// Thread-safe; must outlive the groups made from it.
class LoopbackWorld {
 public:
  LoopbackWorld();
  ~LoopbackWorld();
  LoopbackWorld(const LoopbackWorld&) = delete;
  LoopbackWorld& operator=(const LoopbackWorld&) = delete;

  // The process group of one member. Members with the same `wires` name and members talk to each
  // other. Destroying the group counts as the death of that member.
  std::unique_ptr<ProcessGroup> Join(const std::string& wires, const GroupMembership& membership,
                                     absl::Duration operation_timeout);

  // A store in memory, the same for all ranks.
  std::shared_ptr<KeyValueStore> store() const { return store_; }

 private:
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<LoopbackChannel>> channels_;
  const std::shared_ptr<KeyValueStore> store_;
};

}  // namespace planc

#endif  // PLANC_RUNTIME_PROCESS_GROUP_LOOPBACK_GROUP_H_
