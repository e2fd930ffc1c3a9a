#ifndef PLANC_RUNTIME_PROCESS_GROUP_STORE_SERVER_H_
#define PLANC_RUNTIME_PROCESS_GROUP_STORE_SERVER_H_

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "runtime/process_group/memory_store.h"
#include "runtime/process_group/socket.h"
#include "runtime/process_group/store_protocol.h"

namespace planc {

// The store that rank 0 serves to all ranks (itself included) over TCP; one thread.
class StoreServer {
 public:
  // `listener` listens already.
  static absl::StatusOr<std::unique_ptr<StoreServer>> Start(Socket listener);
  // Waits up to `kLinger` for the clients to hang up, so that the last answers arrive.
  ~StoreServer();

  int port() const { return port_; }

 private:
  static constexpr absl::Duration kLinger = absl::Seconds(5);

  struct Client {
    Socket socket;
    std::string received;  // of an incomplete request
    std::string to_send;
    int64_t rank = -1;  // -1: not told
  };
  struct Waiter {
    int client = -1;
    std::string key;
    absl::Time deadline;
  };

  StoreServer(Socket listener, Socket poll, Socket wake_up, int port);

  void Loop();
  int WaitMilliseconds() const;
  void Accept();
  // False when the client is gone or breaks the protocol.
  bool Serve(Client* client, uint32_t events);
  bool TakeRequests(Client* client);
  bool Flush(Client* client);
  void Handle(Client* client, const StoreRequest& request, const std::string& key,
              const std::string& value);
  void Reply(int client, const absl::Status& status, const std::string& value);
  void AnswerWaiters(const std::string& key);
  void ExpireWaiters();
  // The client is gone; if it was a rank's, nobody waits any longer.
  void Drop(int client);
  absl::Status LostRank() const;

  const Socket listener_;
  const Socket poll_;     // epoll
  const Socket wake_up_;  // eventfd: the destructor was called
  const int port_;
  std::map<int, Client> clients_;  // by descriptor
  std::list<Waiter> waiters_;      // in order of arrival
  KeyTable table_;
  int64_t lost_rank_ = -1;  // the first whose connection ended
  std::thread thread_;
};

}  // namespace planc

#endif  // PLANC_RUNTIME_PROCESS_GROUP_STORE_SERVER_H_
