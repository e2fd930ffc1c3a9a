#ifndef PLANC_RUNTIME_PROCESS_GROUP_STORE_CLIENT_H_
#define PLANC_RUNTIME_PROCESS_GROUP_STORE_CLIENT_H_

#include <memory>
#include <mutex>
#include <string>

#include "runtime/process_group/handshake/handshake.h"
#include "runtime/process_group/handshake/sha256.h"
#include "runtime/process_group/key_value_store.h"
#include "runtime/process_group/socket.h"
#include "runtime/process_group/store_protocol.h"

namespace planc {

// One rank's connection to the StoreServer of rank 0.
class StoreClient : public KeyValueStore {
 public:
  // Waits for the server to come up, and proves the job's secret to it. Errors: as
  // ConnectAuthenticated.
  static absl::StatusOr<std::unique_ptr<StoreClient>> Connect(const std::string& host, int port,
                                                              const SecretFinder& secret,
                                                              const Digest& purpose,
                                                              absl::Duration timeout);
  // The same through an InheritedChannel, whose descriptor for clients this is.
  static absl::StatusOr<std::unique_ptr<StoreClient>> ConnectInherited(int channel,
                                                                       absl::Duration timeout);

  absl::Status Set(const std::string& key, const std::string& value, int64_t reads = 0) override;
  absl::StatusOr<std::string> Get(const std::string& key, absl::Duration timeout) override;

  // Tells the server whose connection this is. From then on, when it is lost, what waits for a
  // value anywhere fails with Unavailable, naming the rank: it may be the one that would have set
  // it.
  absl::Status Join(int64_t rank);

  // How this machine is seen on the network that leads to the server.
  absl::StatusOr<std::string> LocalAddress() const { return planc::LocalAddress(socket_); }

 private:
  explicit StoreClient(Socket socket) : socket_(std::move(socket)) {}

  absl::StatusOr<std::string> Call(StoreRequest request, const std::string& key,
                                   const std::string& value);

  std::mutex mutex_;     // one request at a time
  absl::Status broken_;  // after an answer that did not come, the next would be that one
  const Socket socket_;
};

}  // namespace planc

#endif  // PLANC_RUNTIME_PROCESS_GROUP_STORE_CLIENT_H_
