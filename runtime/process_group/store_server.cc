#include "runtime/process_group/store_server.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "schemas/fault.h"
#include "schemas/status.h"

namespace planc {
namespace {

bool Watch(int poll, int descriptor, uint32_t events, int operation) {
  epoll_event event{};
  event.events = events;
  event.data.fd = descriptor;
  return epoll_ctl(poll, operation, descriptor, &event) == 0;
}

bool WouldBlock() { return errno == EAGAIN || errno == EWOULDBLOCK; }

}  // namespace

Digest StorePurpose(const std::string& job) { return Sha256(absl::StrCat("store of ", job)); }

absl::StatusOr<std::unique_ptr<StoreServer>> StoreServer::Start(
    std::unique_ptr<ConnectionSource> connections, const Digest& purpose,
    const StoreLimits& limits) {
  Socket poll(epoll_create1(EPOLL_CLOEXEC));
  Socket wake_up(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (poll.get() < 0 || wake_up.get() < 0 ||
      !Watch(poll.get(), connections->descriptor(), EPOLLIN, EPOLL_CTL_ADD) ||
      !Watch(poll.get(), wake_up.get(), EPOLLIN, EPOLL_CTL_ADD)) {
    return SystemError("store server", errno);
  }
  return std::unique_ptr<StoreServer>(new StoreServer(std::move(connections), std::move(poll),
                                                      std::move(wake_up), purpose, limits));
}

StoreServer::StoreServer(std::unique_ptr<ConnectionSource> connections, Socket poll, Socket wake_up,
                         const Digest& purpose, const StoreLimits& limits)
    : connections_(std::move(connections)),
      poll_(std::move(poll)),
      wake_up_(std::move(wake_up)),
      purpose_(purpose),
      limits_(limits),
      table_(limits.table_bytes),
      thread_([this] { Loop(); }) {}

StoreServer::~StoreServer() {
  eventfd_write(wake_up_.get(), 1);
  thread_.join();
}

void StoreServer::Loop() {
  std::optional<absl::Time> end;
  std::vector<epoll_event> events(64);
  while (!end.has_value() || (!clients_.empty() && absl::Now() < *end)) {
    const int wait = end.has_value() ? 10 : WaitMilliseconds();
    const int ready = epoll_wait(poll_.get(), events.data(), static_cast<int>(events.size()), wait);
    for (int i = 0; i < ready; ++i) {
      const int descriptor = events[i].data.fd;
      if (descriptor == connections_->descriptor()) {
        Accept(events[i].events);
      } else if (descriptor == wake_up_.get()) {
        end = absl::Now() + kLinger;
        Watch(poll_.get(), wake_up_.get(), 0, EPOLL_CTL_DEL);
      } else {
        const auto client = clients_.find(descriptor);
        if (client != clients_.end() && !Serve(&client->second, events[i].events)) Drop(descriptor);
      }
    }
    if (absl::Now() >= connections_->NextDeadline().value_or(absl::InfiniteFuture())) Accept(0);
    ExpireWaiters();
  }
}

int StoreServer::WaitMilliseconds() const {
  absl::Time first = connections_->NextDeadline().value_or(absl::InfiniteFuture());
  for (const Waiter& waiter : waiters_) first = std::min(first, waiter.deadline);
  if (first == absl::InfiniteFuture()) return -1;
  const int64_t left = absl::ToInt64Milliseconds(first - absl::Now()) + 1;
  return static_cast<int>(std::clamp<int64_t>(left, 0, 60'000));
}

void StoreServer::Accept(uint32_t events) {
  for (NewConnection& connection : connections_->Take()) {
    if (connection.purpose != purpose_ || clients_.size() >= limits_.most_clients) continue;
    const int descriptor = connection.socket.get();
    if (!Watch(poll_.get(), descriptor, EPOLLIN, EPOLL_CTL_ADD)) continue;
    clients_[descriptor].socket = std::move(connection.socket);
  }
  // Nobody is left who could connect.
  if ((events & EPOLLHUP) != 0) Watch(poll_.get(), connections_->descriptor(), 0, EPOLL_CTL_DEL);
}

bool StoreServer::Serve(Client* client, uint32_t events) {
  if ((events & EPOLLIN) != 0) {
    if (!Receive(client)) return false;
  } else if ((events & (EPOLLHUP | EPOLLERR)) != 0) {
    return false;
  }
  return Flush(client);
}

bool StoreServer::Receive(Client* client) {
  char buffer[65536];
  const int descriptor = client->socket.get();
  while (true) {
    // Nobody asks for more before there was an answer.
    const bool silent = client->waits || !client->to_send.empty();
    const size_t wanted = silent ? 1 : std::min(client->received.Missing(), sizeof(buffer));
    const ssize_t bytes = recv(descriptor, buffer, wanted, 0);
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0) return WouldBlock();
    if (bytes == 0 || silent) return false;
    if (!client->received.Add({buffer, static_cast<size_t>(bytes)})) return false;
    if (client->received.Missing() > 0) continue;
    Handle(client, client->received.request(), std::string(client->received.key()),
           std::string(client->received.value()));
    client->received.Clear();
  }
}

void StoreServer::Handle(Client* client, const StoreRequest& request, const std::string& key,
                         const std::string& value) {
  const int descriptor = client->socket.get();
  if (request.kind == StoreRequestKind::kSet) {
    Reply(descriptor, table_.Set(key, value, request.argument), "");
    AnswerWaiters(key);
    return;
  }
  if (request.kind == StoreRequestKind::kJoin) {
    Reply(descriptor, Join(client, request.argument), "");
    return;
  }
  const std::optional<std::string> found = table_.Read(key);
  if (found.has_value()) {
    Reply(descriptor, absl::OkStatus(), *found);
  } else if (request.argument <= 0) {
    Reply(descriptor, absl::NotFoundError(key), "");
  } else if (lost_rank_ >= 0) {
    Reply(descriptor, LostRank(), "");
  } else {
    client->waits = true;
    waiters_.push_back({descriptor, key, absl::Now() + absl::Microseconds(request.argument)});
  }
}

absl::Status StoreServer::Join(Client* client, int64_t rank) {
  if (rank >= limits_.world_size || client->rank >= 0 || !joined_.insert(rank).second) {
    return absl::AlreadyExistsError(
        absl::StrCat("rank ", rank,
                     " cannot join the store: it is there already, or there is no "
                     "such rank"));
  }
  client->rank = rank;
  return absl::OkStatus();
}

void StoreServer::AnswerWaiters(const std::string& key) {
  for (auto waiter = waiters_.begin(); waiter != waiters_.end();) {
    const auto next = std::next(waiter);
    if (waiter->key == key) {
      const std::optional<std::string> found = table_.Read(key);
      if (!found.has_value()) return;
      Reply(waiter->client, absl::OkStatus(), *found);
      waiters_.erase(waiter);
    }
    waiter = next;
  }
}

void StoreServer::ExpireWaiters() {
  const absl::Time now = absl::Now();
  for (auto waiter = waiters_.begin(); waiter != waiters_.end();) {
    const auto next = std::next(waiter);
    if (waiter->deadline <= now) {
      Reply(waiter->client,
            absl::DeadlineExceededError(
                absl::StrCat("store key ", waiter->key, " was not set in time")),
            "");
      waiters_.erase(waiter);
    }
    waiter = next;
  }
}

void StoreServer::Reply(int client, const absl::Status& status, const std::string& value) {
  const std::string text = status.ok() ? value : std::string(status.message());
  const StoreReply reply{static_cast<int32_t>(status.code()), static_cast<uint32_t>(text.size())};
  Client& receiver = clients_.at(client);
  receiver.waits = false;
  receiver.to_send.append(reinterpret_cast<const char*>(&reply), sizeof(reply));
  receiver.to_send += text;
  // A client that is gone is noticed and dropped when its socket is next polled.
  Flush(&receiver);
}

bool StoreServer::Flush(Client* client) {
  while (!client->to_send.empty()) {
    const ssize_t bytes =
        send(client->socket.get(), client->to_send.data(), client->to_send.size(), MSG_NOSIGNAL);
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0 && !WouldBlock()) return false;
    if (bytes < 0) break;
    client->to_send.erase(0, bytes);
  }
  const uint32_t events = client->to_send.empty() ? EPOLLIN : EPOLLIN | EPOLLOUT;
  return Watch(poll_.get(), client->socket.get(), events, EPOLL_CTL_MOD);
}

void StoreServer::Drop(int client) {
  waiters_.remove_if([client](const Waiter& waiter) { return waiter.client == client; });
  const int64_t rank = clients_.at(client).rank;
  clients_.erase(client);
  if (rank < 0 || lost_rank_ >= 0) return;
  lost_rank_ = rank;
  for (const Waiter& waiter : std::exchange(waiters_, {})) Reply(waiter.client, LostRank(), "");
}

absl::Status StoreServer::LostRank() const {
  return absl::UnavailableError(absl::StrCat("rank ", lost_rank_, " is gone"));
}

}  // namespace planc
