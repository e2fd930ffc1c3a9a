#ifndef PLANC_RUNTIME_PROCESS_GROUP_HANDSHAKE_AUTHENTICATED_LISTENER_H_
#define PLANC_RUNTIME_PROCESS_GROUP_HANDSHAKE_AUTHENTICATED_LISTENER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "runtime/process_group/handshake/connection_source.h"
#include "runtime/process_group/handshake/handshake.h"
#include "runtime/process_group/socket.h"

namespace planc {

// What strangers may cost before they have proven anything.
struct StrangerLimits {
  size_t most = 1024;                              // connections at once, of a few hundred bytes
  absl::Duration longest = absl::Seconds(10);      // for the whole handshake
  absl::Duration fair = absl::Seconds(1);          // after which one makes way for others
  absl::Duration pause = absl::Milliseconds(100);  // when the process has no descriptor left
};

// Accepts TCP connections and lets those through that prove the job's secret (handshake.h). The
// others never reach the code behind it.
class AuthenticatedListener : public ConnectionSource {
 public:
  // `listener` listens already. `id` names the secret to those who connect.
  static absl::StatusOr<std::unique_ptr<AuthenticatedListener>> Create(
      Socket listener, std::string secret, const SecretId& id, const StrangerLimits& limits = {});

  int descriptor() const override { return poll_.get(); }
  std::optional<absl::Time> NextDeadline() const override;
  std::vector<NewConnection> Take() override;

  // Connections that have not proven anything yet.
  size_t strangers() const { return strangers_.size(); }

 private:
  struct Stranger {
    Socket socket;
    Greeting greeting;
    std::array<uint8_t, sizeof(Claim)> received;
    size_t received_bytes = 0;
    absl::Time since;
  };

  AuthenticatedListener(Socket listener, Socket poll, std::string secret, const SecretId& id,
                        const StrangerLimits& limits);

  void Accept();
  void Pause(absl::Time until);
  // Whether the stranger is done with; what is let through is added to `accepted`.
  bool Serve(Stranger* stranger, std::vector<NewConnection>* accepted);

  const Socket listener_;
  const Socket poll_;  // epoll
  const std::string secret_;
  const SecretId id_;
  const StrangerLimits limits_;
  std::list<Stranger> strangers_;  // oldest first
  std::optional<absl::Time> paused_until_;
};

}  // namespace planc

#endif  // PLANC_RUNTIME_PROCESS_GROUP_HANDSHAKE_AUTHENTICATED_LISTENER_H_
