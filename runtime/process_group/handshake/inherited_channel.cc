#include "runtime/process_group/handshake/inherited_channel.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "schemas/fault.h"
#include "schemas/status.h"

namespace planc {
namespace {

// Room for one descriptor beside a message.
union Passed {
  cmsghdr aligned;
  char bytes[CMSG_SPACE(sizeof(int))];
};

absl::Status Refused(const std::string& what, int error) {
  return WithFault(absl::UnavailableError(absl::StrCat(what, ": ", std::strerror(error))),
                   FaultOfErrno(error));
}

absl::Status Pass(int channel, int descriptor, absl::Time deadline) {
  char byte = 0;
  iovec data{&byte, 1};
  Passed passed{};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = passed.bytes;
  message.msg_controllen = sizeof(passed.bytes);
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &descriptor, sizeof(int));
  while (sendmsg(channel, &message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
    if (errno == EINTR) continue;
    if (errno != EAGAIN) return Refused("rank 0 is gone", errno);
    const int64_t left = absl::ToInt64Milliseconds(deadline - absl::Now());
    if (left <= 0) return absl::DeadlineExceededError("rank 0 does not answer");
    pollfd polled{channel, POLLOUT, 0};
    poll(&polled, 1, static_cast<int>(std::min<int64_t>(left, 1000)));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<InheritedChannel> InheritedChannel::Create() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return SystemError("socketpair", errno);
  }
  return InheritedChannel{Socket(ends[0]), Socket(ends[1])};
}

absl::StatusOr<Socket> ConnectThrough(int clients, absl::Duration timeout) {
  const absl::Time deadline = absl::Now() + timeout;
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return SystemError("socketpair", errno);
  }
  Socket own(ends[0]);
  {
    const Socket other(ends[1]);
    PLANC_RETURN_IF_ERROR(Pass(clients, other.get(), deadline));
  }
  char taken = 0;
  PLANC_RETURN_IF_ERROR(
      own.SetReceiveTimeout(std::max(deadline - absl::Now(), absl::Milliseconds(1))));
  PLANC_RETURN_IF_ERROR(own.ReceiveAll(&taken, 1));
  PLANC_RETURN_IF_ERROR(own.SetReceiveTimeout(absl::ZeroDuration()));
  return own;
}

std::vector<NewConnection> InheritedConnections::Take() {
  std::vector<NewConnection> taken;
  bool more = true;
  while (more) {
    std::optional<Socket> socket = TakeOne(&more);
    if (!socket.has_value()) continue;
    const char byte = 0;
    fcntl(socket->get(), F_SETFL, fcntl(socket->get(), F_GETFL) | O_NONBLOCK);
    // One that is gone already is noticed when it is read from.
    send(socket->get(), &byte, 1, MSG_NOSIGNAL);
    taken.push_back({*std::move(socket), {}});
  }
  return taken;
}

std::optional<Socket> InheritedConnections::TakeOne(bool* more) {
  char byte = 0;
  iovec data{&byte, 1};
  Passed passed{};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = passed.bytes;
  message.msg_controllen = sizeof(passed.bytes);
  const ssize_t bytes = recvmsg(server_.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  *more = bytes > 0 || (bytes < 0 && errno == EINTR);
  const cmsghdr* const header = bytes > 0 ? CMSG_FIRSTHDR(&message) : nullptr;
  if (header == nullptr || header->cmsg_type != SCM_RIGHTS) return std::nullopt;
  int descriptor = -1;
  std::memcpy(&descriptor, CMSG_DATA(header), sizeof(int));
  return Socket(descriptor);
}

}  // namespace planc
