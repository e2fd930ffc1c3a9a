#ifndef PLANC_RUNTIME_PROCESS_GROUP_HANDSHAKE_INHERITED_CHANNEL_H_
#define PLANC_RUNTIME_PROCESS_GROUP_HANDSHAKE_INHERITED_CHANNEL_H_

#include <optional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "runtime/process_group/handshake/connection_source.h"
#include "runtime/process_group/socket.h"

namespace planc {

// How processes of one machine connect without an address: they inherit a pair of sockets, and
// whoever wants a connection makes one and passes an end of it through that pair. Nothing listens,
// and nobody else can take part.
struct InheritedChannel {
  Socket server;   // for the one that serves
  Socket clients;  // for all that connect

  static absl::StatusOr<InheritedChannel> Create();
};

// A connection to the server. Waits until that has taken it. `clients`: the descriptor.
// Errors: Unavailable when the server is gone, DeadlineExceeded.
absl::StatusOr<Socket> ConnectThrough(int clients, absl::Duration timeout);

// The server's end.
class InheritedConnections : public ConnectionSource {
 public:
  explicit InheritedConnections(Socket server) : server_(std::move(server)) {}

  int descriptor() const override { return server_.get(); }
  std::vector<NewConnection> Take() override;

 private:
  // Nothing when there is none at the moment.
  std::optional<Socket> TakeOne(bool* more);

  const Socket server_;
};

}  // namespace planc

#endif  // PLANC_RUNTIME_PROCESS_GROUP_HANDSHAKE_INHERITED_CHANNEL_H_
