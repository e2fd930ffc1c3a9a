#include "runtime/process_group/store_access.h"

#include <utility>

#include "runtime/process_group/handshake/inherited_channel.h"
#include "schemas/status.h"

namespace planc {
namespace {

// Connections of one rank: of its groups' meeting, its background thread, and what it looks up
// beside them.
constexpr size_t kConnectionsOfARank = 8;

absl::StatusOr<Socket> Listen(const LaunchConfig& launch) {
  if (launch.store_socket >= 0) return Socket(launch.store_socket);
  const bool only_here = launch.local_world_size == launch.world_size;
  absl::StatusOr<Socket> listener = ListenOn(launch.store_host, launch.store_port, only_here);
  if (listener.ok()) return listener;
  return WithContext(listener.status(), "store of rank 0 (MASTER_ADDR and MASTER_PORT say where)");
}

}  // namespace

absl::StatusOr<std::shared_ptr<StoreAccess>> StoreAccess::Open(const LaunchConfig& launch,
                                                               const std::string& job,
                                                               const std::string& secret_folder,
                                                               const StrangerLimits& strangers) {
  std::shared_ptr<StoreAccess> access(new StoreAccess);
  access->host_ = launch.store_host;
  access->port_ = launch.store_port;
  access->channel_ = launch.store_channel;
  access->purpose_ = StorePurpose(job);
  access->found_->secret = launch.secret;
  // What was found also serves later connections, when the file is gone.
  access->finder_ = [found = access->found_, find = FindIn(launch.secret, secret_folder)](
                        const SecretId& id) -> absl::StatusOr<std::string> {
    const std::lock_guard<std::mutex> lock(found->mutex);
    if (id != SecretId{} && id == found->id) return found->secret;
    PLANC_ASSIGN_OR_RETURN(found->secret, find(id));
    found->id = id;
    return found->secret;
  };
  if (launch.rank == 0) PLANC_RETURN_IF_ERROR(access->Serve(launch, secret_folder, strangers));
  return access;
}

absl::Status StoreAccess::Serve(const LaunchConfig& launch, const std::string& secret_folder,
                                const StrangerLimits& strangers) {
  StoreLimits limits;
  limits.world_size = launch.world_size;
  limits.most_clients = kConnectionsOfARank * static_cast<size_t>(launch.world_size);
  if (channel_ >= 0) {
    PLANC_ASSIGN_OR_RETURN(
        server_,
        StoreServer::Start(std::make_unique<InheritedConnections>(Socket(launch.store_socket)),
                           Digest{}, limits));
    return absl::OkStatus();
  }
  PLANC_ASSIGN_OR_RETURN(Socket listener, Listen(launch));
  PLANC_ASSIGN_OR_RETURN(port_, BoundPort(listener));
  if (found_->secret.empty()) {
    PLANC_ASSIGN_OR_RETURN(file_, SecretFile::Create(secret_folder));
    found_->id = file_->id();
    found_->secret = file_->secret();
  }
  PLANC_ASSIGN_OR_RETURN(
      auto connections,
      AuthenticatedListener::Create(std::move(listener), found_->secret, found_->id, strangers));
  PLANC_ASSIGN_OR_RETURN(server_, StoreServer::Start(std::move(connections), purpose_, limits));
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<StoreClient>> StoreAccess::Connect(absl::Duration timeout) const {
  if (channel_ >= 0) return StoreClient::ConnectInherited(channel_, timeout);
  return StoreClient::Connect(host_, port_, finder_, purpose_, timeout);
}

}  // namespace planc
