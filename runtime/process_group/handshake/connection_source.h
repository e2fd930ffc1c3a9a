#ifndef PLANC_RUNTIME_PROCESS_GROUP_HANDSHAKE_CONNECTION_SOURCE_H_
#define PLANC_RUNTIME_PROCESS_GROUP_HANDSHAKE_CONNECTION_SOURCE_H_

#include <optional>
#include <vector>

#include "absl/time/time.h"
#include "runtime/process_group/handshake/sha256.h"
#include "runtime/process_group/socket.h"

namespace planc {

struct NewConnection {
  Socket socket;     // does not block
  Digest purpose{};  // as the one who connected claims; zeros where the source has only one
};

// Where connections of other ranks come from, for one thread that polls. Whoever comes out of it
// belongs to the job.
class ConnectionSource {
 public:
  virtual ~ConnectionSource() = default;

  // To be polled for input: when it has some, and when the deadline has passed, Take is called.
  virtual int descriptor() const = 0;
  virtual std::optional<absl::Time> NextDeadline() const { return std::nullopt; }
  // Never blocks.
  virtual std::vector<NewConnection> Take() = 0;
};

}  // namespace planc

#endif  // PLANC_RUNTIME_PROCESS_GROUP_HANDSHAKE_CONNECTION_SOURCE_H_
