#ifndef PLANC_RUNTIME_PROCESS_GROUP_STORE_SERVER_H_
#define PLANC_RUNTIME_PROCESS_GROUP_STORE_SERVER_H_

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "runtime/process_group/handshake/connection_source.h"
#include "runtime/process_group/handshake/sha256.h"
#include "runtime/process_group/memory_store.h"
#include "runtime/process_group/socket.h"
#include "runtime/process_group/store_protocol.h"

namespace planc {

// What the clients of a store may do, all of which belong to the job: bounds what one that has gone
// wrong can take from rank 0.
struct StoreLimits {
  int64_t world_size = int64_t{1} << 20;  // ranks that may join
  size_t most_clients = size_t{1} << 21;
  size_t table_bytes = size_t{1} << 30;  // of all keys and values that wait to be read
};

// What a connection to the store is for, told apart from those to other jobs and starts; `job`:
// their common prefix of keys.
Digest StorePurpose(const std::string& job);

// The store that rank 0 serves to all ranks (itself included); one thread.
class StoreServer {
 public:
  // Serves those of the connections that are for `purpose`.
  static absl::StatusOr<std::unique_ptr<StoreServer>> Start(
      std::unique_ptr<ConnectionSource> connections, const Digest& purpose,
      const StoreLimits& limits = {});
  // Waits up to `kLinger` for the clients to hang up, so that the last answers arrive.
  ~StoreServer();

 private:
  static constexpr absl::Duration kLinger = absl::Seconds(5);

  struct Client {
    Socket socket;
    StoreRequestReader received;
    bool waits = false;  // for a key
    std::string to_send;
    int64_t rank = -1;  // -1: not told
  };
  struct Waiter {
    int client = -1;
    std::string key;
    absl::Time deadline;
  };

  StoreServer(std::unique_ptr<ConnectionSource> connections, Socket poll, Socket wake_up,
              const Digest& purpose, const StoreLimits& limits);

  void Loop();
  int WaitMilliseconds() const;
  void Accept(uint32_t events);
  // False when the client is gone or breaks the protocol.
  bool Serve(Client* client, uint32_t events);
  bool Receive(Client* client);
  bool Flush(Client* client);
  void Handle(Client* client, const StoreRequest& request, const std::string& key,
              const std::string& value);
  absl::Status Join(Client* client, int64_t rank);
  void Reply(int client, const absl::Status& status, const std::string& value);
  void AnswerWaiters(const std::string& key);
  void ExpireWaiters();
  // The client is gone; if it was a rank's, nobody waits any longer.
  void Drop(int client);
  absl::Status LostRank() const;

  const std::unique_ptr<ConnectionSource> connections_;
  const Socket poll_;     // epoll
  const Socket wake_up_;  // eventfd: the destructor was called
  const Digest purpose_;
  const StoreLimits limits_;
  std::map<int, Client> clients_;  // by descriptor
  std::list<Waiter> waiters_;      // in order of arrival
  KeyTable table_;
  std::set<int64_t> joined_;
  int64_t lost_rank_ = -1;  // the first whose connection ended
  std::thread thread_;
};

}  // namespace planc

#endif  // PLANC_RUNTIME_PROCESS_GROUP_STORE_SERVER_H_
