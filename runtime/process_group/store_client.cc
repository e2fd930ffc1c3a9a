#include "runtime/process_group/store_client.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/process_group/handshake/inherited_channel.h"
#include "schemas/status.h"

namespace planc {
namespace {

// The server answers a waiting Get when its time is over; only a server that is stuck exceeds this.
constexpr absl::Duration kServerSlack = absl::Seconds(10);

}  // namespace

absl::StatusOr<std::unique_ptr<StoreClient>> StoreClient::Connect(const std::string& host, int port,
                                                                  const SecretFinder& secret,
                                                                  const Digest& purpose,
                                                                  absl::Duration timeout) {
  absl::StatusOr<Socket> socket = ConnectAuthenticated(host, port, secret, purpose, timeout);
  if (!socket.ok()) return WithContext(socket.status(), "store of rank 0");
  return std::unique_ptr<StoreClient>(new StoreClient(*std::move(socket)));
}

absl::StatusOr<std::unique_ptr<StoreClient>> StoreClient::ConnectInherited(int channel,
                                                                           absl::Duration timeout) {
  absl::StatusOr<Socket> socket = ConnectThrough(channel, timeout);
  if (!socket.ok()) return WithContext(socket.status(), "store of rank 0");
  return std::unique_ptr<StoreClient>(new StoreClient(*std::move(socket)));
}

absl::Status StoreClient::Set(const std::string& key, const std::string& value, int64_t reads) {
  StoreRequest request;
  request.kind = StoreRequestKind::kSet;
  request.argument = reads;
  return Call(request, key, value).status();
}

absl::StatusOr<std::string> StoreClient::Get(const std::string& key, absl::Duration timeout) {
  StoreRequest request;
  request.kind = StoreRequestKind::kGet;
  request.argument = std::max<int64_t>(0, absl::ToInt64Microseconds(timeout));
  return Call(request, key, "");
}

absl::Status StoreClient::Join(int64_t rank) {
  StoreRequest request;
  request.kind = StoreRequestKind::kJoin;
  request.argument = rank;
  return Call(request, "", "").status();
}

absl::StatusOr<std::string> StoreClient::Call(StoreRequest request, const std::string& key,
                                              const std::string& value) {
  if (key.size() > kMostKeyBytes || value.size() > kMaximumStoreBytes) {
    return absl::InvalidArgumentError(absl::StrCat("store key ", key, ": value too long"));
  }
  request.key_bytes = key.size();
  request.value_bytes = value.size();
  std::string message(reinterpret_cast<const char*>(&request), sizeof(request));
  absl::StrAppend(&message, key, value);

  std::lock_guard<std::mutex> lock(mutex_);
  if (!broken_.ok()) return broken_;
  StoreReply reply;
  std::string answer;
  absl::Status status = socket_.SendAll(message.data(), message.size());
  if (status.ok()) {
    const absl::Duration wait = request.kind == StoreRequestKind::kGet
                                    ? absl::Microseconds(request.argument)
                                    : absl::ZeroDuration();
    status = socket_.SetReceiveTimeout(wait + kServerSlack);
  }
  if (status.ok()) status = socket_.ReceiveAll(&reply, sizeof(reply));
  if (status.ok() && reply.value_bytes > kMaximumStoreBytes) {
    status = absl::UnavailableError("malformed answer");
  }
  if (status.ok()) {
    answer.resize(reply.value_bytes);
    status = socket_.ReceiveAll(answer.data(), answer.size());
  }
  if (!status.ok()) {
    broken_ = absl::UnavailableError(
        absl::StrCat("rank 0 is gone: its store, asked for ", key, ": ", status.message()));
    return broken_;
  }
  if (reply.code == 0) return answer;
  return absl::Status(static_cast<absl::StatusCode>(reply.code), answer);
}

}  // namespace planc
