#include "runtime/process_group/handshake/authenticated_listener.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/time/clock.h"
#include "schemas/fault.h"

namespace planc {
namespace {

bool Watch(int poll, int descriptor, int operation) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = descriptor;
  return epoll_ctl(poll, operation, descriptor, &event) == 0;
}

bool OutOfDescriptors(int error) {
  return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

}  // namespace

absl::StatusOr<std::unique_ptr<AuthenticatedListener>> AuthenticatedListener::Create(
    Socket listener, std::string secret, const SecretId& id, const StrangerLimits& limits) {
  Socket poll(epoll_create1(EPOLL_CLOEXEC));
  if (poll.get() < 0 ||
      fcntl(listener.get(), F_SETFL, fcntl(listener.get(), F_GETFL) | O_NONBLOCK) != 0 ||
      !Watch(poll.get(), listener.get(), EPOLL_CTL_ADD)) {
    return SystemError("listener", errno);
  }
  return std::unique_ptr<AuthenticatedListener>(new AuthenticatedListener(
      std::move(listener), std::move(poll), std::move(secret), id, limits));
}

AuthenticatedListener::AuthenticatedListener(Socket listener, Socket poll, std::string secret,
                                             const SecretId& id, const StrangerLimits& limits)
    : listener_(std::move(listener)),
      poll_(std::move(poll)),
      secret_(std::move(secret)),
      id_(id),
      limits_(limits) {}

std::optional<absl::Time> AuthenticatedListener::NextDeadline() const {
  std::optional<absl::Time> next = paused_until_;
  if (!strangers_.empty()) {
    const absl::Time oldest = strangers_.front().since + limits_.longest;
    next = std::min(next.value_or(oldest), oldest);
  }
  return next;
}

std::vector<NewConnection> AuthenticatedListener::Take() {
  std::vector<NewConnection> accepted;
  const absl::Time now = absl::Now();
  if (paused_until_.has_value() && now >= *paused_until_) {
    paused_until_.reset();
    Watch(poll_.get(), listener_.get(), EPOLL_CTL_ADD);
  }
  if (!paused_until_.has_value()) Accept();
  for (auto stranger = strangers_.begin(); stranger != strangers_.end();) {
    const bool done = Serve(&*stranger, &accepted) || now - stranger->since >= limits_.longest;
    stranger = done ? strangers_.erase(stranger) : std::next(stranger);
  }
  return accepted;
}

// What cannot be accepted now would be reported by the poll again and again.
void AuthenticatedListener::Pause(absl::Time until) {
  paused_until_ = until;
  Watch(poll_.get(), listener_.get(), EPOLL_CTL_DEL);
}

void AuthenticatedListener::Accept() {
  while (true) {
    const absl::Time now = absl::Now();
    if (strangers_.size() >= limits_.most) {
      if (now - strangers_.front().since < limits_.fair) {
        return Pause(strangers_.front().since + limits_.fair);
      }
      strangers_.pop_front();
    }
    Socket socket(accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (socket.get() < 0 && (errno == EINTR || errno == ECONNABORTED)) continue;
    if (socket.get() < 0 && OutOfDescriptors(errno)) return Pause(now + limits_.pause);
    if (socket.get() < 0) return;
    const int on = 1;
    setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    setsockopt(socket.get(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    absl::StatusOr<Greeting> greeting = MakeGreeting(id_);
    // The buffer of a new socket has room for it.
    if (!greeting.ok() || send(socket.get(), &*greeting, sizeof(*greeting), MSG_NOSIGNAL) !=
                              static_cast<ssize_t>(sizeof(*greeting))) {
      continue;
    }
    if (!Watch(poll_.get(), socket.get(), EPOLL_CTL_ADD)) continue;
    strangers_.push_back({std::move(socket), *greeting, {}, 0, now});
  }
}

bool AuthenticatedListener::Serve(Stranger* stranger, std::vector<NewConnection>* accepted) {
  const ssize_t bytes =
      recv(stranger->socket.get(), stranger->received.data() + stranger->received_bytes,
           stranger->received.size() - stranger->received_bytes, 0);
  if (bytes < 0) return errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR;
  if (bytes == 0) return true;
  stranger->received_bytes += bytes;
  if (stranger->received_bytes < stranger->received.size()) return false;
  Claim claim;
  std::memcpy(&claim, stranger->received.data(), sizeof(claim));
  const std::optional<Welcome> welcome = CheckClaim(secret_, stranger->greeting, claim);
  if (!welcome.has_value()) return true;
  if (send(stranger->socket.get(), &*welcome, sizeof(*welcome), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(sizeof(*welcome))) {
    return true;
  }
  Watch(poll_.get(), stranger->socket.get(), EPOLL_CTL_DEL);
  accepted->push_back({std::move(stranger->socket), claim.purpose});
  return true;
}

}  // namespace planc
