#include "runtime/process_group/socket.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "schemas/fault.h"
#include "schemas/status.h"

namespace planc {
namespace {

constexpr int kBacklog = 4096;

using AddressList = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

absl::Status ErrnoStatus(const std::string& what) {
  return WithFault(absl::UnavailableError(absl::StrCat(what, ": ", std::strerror(errno))),
                   FaultOfErrno(errno));
}

absl::StatusOr<AddressList> Resolve(const std::string& host, int port) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (error != 0) {
    const std::string reason = error == EAI_SYSTEM ? std::strerror(errno) : gai_strerror(error);
    // A name server that does not answer now may do so later.
    return WithFault(
        absl::UnavailableError(absl::StrCat("cannot resolve ", host, ": ", reason)),
        error == EAI_AGAIN || error == EAI_FAIL ? Fault::kPeerLost : Fault::kEnvironment);
  }
  return AddressList(found, &freeaddrinfo);
}

bool IsLoopback(const sockaddr* address) {
  if (address->sa_family == AF_INET) {
    const auto* const ipv4 = reinterpret_cast<const sockaddr_in*>(address);
    return (ntohl(ipv4->sin_addr.s_addr) >> 24) == 127;
  }
  const auto* const ipv6 = reinterpret_cast<const sockaddr_in6*>(address);
  return IN6_IS_ADDR_LOOPBACK(&ipv6->sin6_addr);
}

void UseEveryInterface(sockaddr* address) {
  if (address->sa_family == AF_INET) {
    reinterpret_cast<sockaddr_in*>(address)->sin_addr.s_addr = htonl(INADDR_ANY);
  } else {
    reinterpret_cast<sockaddr_in6*>(address)->sin6_addr = in6addr_any;
  }
}

Socket OpenSocket(int family) {
  return Socket(socket(family, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_TCP));
}

}  // namespace

void Socket::Close() {
  if (descriptor_ >= 0) close(descriptor_);
  descriptor_ = -1;
}

absl::Status Socket::SendAll(const void* data, size_t bytes) const {
  const auto* next = static_cast<const uint8_t*>(data);
  while (bytes > 0) {
    const ssize_t sent = send(descriptor_, next, bytes, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return ErrnoStatus("send");
    next += sent;
    bytes -= sent;
  }
  return absl::OkStatus();
}

absl::Status Socket::ReceiveAll(void* data, size_t bytes) const {
  auto* next = static_cast<uint8_t*>(data);
  while (bytes > 0) {
    const ssize_t received = recv(descriptor_, next, bytes, 0);
    if (received < 0 && errno == EINTR) continue;
    if (received == 0) return absl::UnavailableError("the connection was closed");
    if (received < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      return absl::DeadlineExceededError("no answer in time");
    }
    if (received < 0) return ErrnoStatus("receive");
    next += received;
    bytes -= received;
  }
  return absl::OkStatus();
}

absl::Status Socket::SetReceiveTimeout(absl::Duration timeout) const {
  const timeval value = absl::ToTimeval(timeout);
  if (setsockopt(descriptor_, SOL_SOCKET, SO_RCVTIMEO, &value, sizeof(value)) != 0) {
    return ErrnoStatus("SO_RCVTIMEO");
  }
  return absl::OkStatus();
}

absl::StatusOr<Socket> ListenOn(const std::string& host, int port, bool only_here) {
  PLANC_ASSIGN_OR_RETURN(const AddressList addresses, Resolve(host, port));
  sockaddr* const address = addresses->ai_addr;
  if (!only_here || !IsLoopback(address)) UseEveryInterface(address);
  Socket listener = OpenSocket(addresses->ai_family);
  if (listener.get() < 0) return ErrnoStatus("socket");
  const int on = 1;
  setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (bind(listener.get(), address, addresses->ai_addrlen) != 0 ||
      listen(listener.get(), kBacklog) != 0) {
    return ErrnoStatus(absl::StrCat("cannot listen on port ", port));
  }
  return listener;
}

absl::StatusOr<int> BoundPort(const Socket& socket) {
  sockaddr_storage address{};
  socklen_t length = sizeof(address);
  if (getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    return ErrnoStatus("getsockname");
  }
  return address.ss_family == AF_INET
             ? ntohs(reinterpret_cast<const sockaddr_in*>(&address)->sin_port)
             : ntohs(reinterpret_cast<const sockaddr_in6*>(&address)->sin6_port);
}

absl::StatusOr<Socket> ConnectTo(const std::string& host, int port, absl::Duration timeout) {
  const absl::Time deadline = absl::Now() + timeout;
  absl::Status last;
  do {
    absl::StatusOr<AddressList> addresses = Resolve(host, port);
    last = addresses.status();
    for (const addrinfo* a = addresses.ok() ? addresses->get() : nullptr; a; a = a->ai_next) {
      Socket socket = OpenSocket(a->ai_family);
      if (socket.get() < 0) return ErrnoStatus("socket");
      if (connect(socket.get(), a->ai_addr, a->ai_addrlen) == 0) {
        const int on = 1;
        setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
        setsockopt(socket.get(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
        return socket;
      }
      last = ErrnoStatus("connect");
    }
    absl::SleepFor(absl::Milliseconds(20));
  } while (absl::Now() < deadline);
  return WithContext(
      last, absl::StrCat("cannot reach ", host, " port ", port, " within ",
                         absl::FormatDuration(absl::Ceil(timeout, absl::Milliseconds(1)))));
}

absl::StatusOr<std::string> LocalAddress(const Socket& socket) {
  sockaddr_storage address{};
  socklen_t length = sizeof(address);
  char host[NI_MAXHOST];
  if (getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &length) != 0 ||
      getnameinfo(reinterpret_cast<sockaddr*>(&address), length, host, sizeof(host), nullptr, 0,
                  NI_NUMERICHOST) != 0) {
    return ErrnoStatus("cannot tell the local address");
  }
  return std::string(host);
}

absl::StatusOr<std::string> LocalAddressTowards(const std::string& host) {
  constexpr int kAnyPort = 9;  // a datagram socket connects without a packet
  PLANC_ASSIGN_OR_RETURN(const AddressList addresses, Resolve(host, kAnyPort));
  const Socket probe(socket(addresses->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (connect(probe.get(), addresses->ai_addr, addresses->ai_addrlen) != 0) {
    return ErrnoStatus(absl::StrCat("no route to ", host));
  }
  return LocalAddress(probe);
}

}  // namespace planc
