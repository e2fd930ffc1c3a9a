#ifndef PLANC_RUNTIME_PROCESS_GROUP_HANDSHAKE_HANDSHAKE_H_
#define PLANC_RUNTIME_PROCESS_GROUP_HANDSHAKE_HANDSHAKE_H_

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "runtime/process_group/handshake/sha256.h"
#include "runtime/process_group/socket.h"

namespace planc {

// How both ends of a TCP connection prove that they know the job's secret, which itself is never
// sent: each signs the other's random number with HMAC-SHA-256. What was recorded of another
// connection proves nothing.
//   listener: Greeting; the one who connects: Claim; listener: Welcome, or it hangs up.
// It authenticates the start of a connection. What follows is neither encrypted nor signed.

// Names a secret without telling it; zeros: the one that every rank knows from its environment.
using SecretId = std::array<uint8_t, 16>;

inline constexpr uint32_t kHandshakeMagic = 0x31707a70;
inline constexpr uint32_t kHandshakeVersion = 1;

struct Greeting {
  uint32_t magic = kHandshakeMagic;
  uint32_t version = kHandshakeVersion;
  Digest nonce{};
  SecretId secret_id{};
};

struct Claim {
  Digest nonce{};
  Digest purpose{};  // what the connection is for: both ends derive it from the same words
  Digest proof{};
};

struct Welcome {
  Digest proof{};
};

// A greeting with a fresh number.
absl::StatusOr<Greeting> MakeGreeting(const SecretId& id);
// The answer to a greeting by one who knows the secret, with a fresh number.
absl::StatusOr<Claim> MakeClaim(const std::string& secret, const Greeting& greeting,
                                const Digest& purpose);
// The answer to the claim; nothing when it was not made for this greeting with this secret.
std::optional<Welcome> CheckClaim(const std::string& secret, const Greeting& greeting,
                                  const Claim& claim);
bool IsWelcome(const std::string& secret, const Greeting& greeting, const Claim& claim,
               const Welcome& welcome);

// Looks the secret up that a listener names.
using SecretFinder = std::function<absl::StatusOr<std::string>(const SecretId&)>;

// Connects to an AuthenticatedListener that may not be up yet, and proves the secret both ways.
// Tries until `timeout` has passed.
// Errors: as ConnectTo; the finder's; PermissionDenied when who listens there does not speak this
// protocol or does not know the secret, which for one that says something else is final after a few
// seconds.
absl::StatusOr<Socket> ConnectAuthenticated(const std::string& host, int port,
                                            const SecretFinder& secret, const Digest& purpose,
                                            absl::Duration timeout);

}  // namespace planc

#endif  // PLANC_RUNTIME_PROCESS_GROUP_HANDSHAKE_HANDSHAKE_H_
