#ifndef PLANC_RUNTIME_PROCESS_GROUP_SOCKET_H_
#define PLANC_RUNTIME_PROCESS_GROUP_SOCKET_H_

#include <cstddef>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace planc {

// Owns a file descriptor of a TCP socket. Move-only.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  ~Socket() { Close(); }
  Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }

  int get() const { return descriptor_; }
  // Gives the descriptor away.
  int Release() { return std::exchange(descriptor_, -1); }
  void Close();

  // Blocking transfer of exactly `bytes`. Errors: Unavailable when the other side is gone,
  // DeadlineExceeded after SetReceiveTimeout's time.
  absl::Status SendAll(const void* data, size_t bytes) const;
  absl::Status ReceiveAll(void* data, size_t bytes) const;
  // Longest wait of one ReceiveAll step; infinite if never called.
  absl::Status SetReceiveTimeout(absl::Duration timeout) const;

 private:
  int descriptor_ = -1;
};

// A socket that listens on `port` (0: any free one): on the loopback interface when `host` resolves
// to it and `only_here`, else on every interface of the same address family. Not `only_here`: other
// machines connect too, which may know this one by a name that it resolves to loopback itself.
absl::StatusOr<Socket> ListenOn(const std::string& host, int port, bool only_here = true);
// The port a socket is bound to.
absl::StatusOr<int> BoundPort(const Socket& socket);

// Connects to a listener that may not be up yet, trying until `timeout` has passed.
absl::StatusOr<Socket> ConnectTo(const std::string& host, int port, absl::Duration timeout);

// The numeric local address of a connected socket: how this machine is seen from the other side's
// network.
absl::StatusOr<std::string> LocalAddress(const Socket& socket);

// The numeric address of this machine on the way to `host`; nothing is sent.
absl::StatusOr<std::string> LocalAddressTowards(const std::string& host);

}  // namespace planc

#endif  // PLANC_RUNTIME_PROCESS_GROUP_SOCKET_H_
