#include "runtime/process_group/connect_groups.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/process_group/gloo_group.h"
#include "runtime/process_group/store_client.h"
#include "runtime/process_group/store_server.h"
#include "schemas/status.h"

namespace planc {
namespace {

// Rank 0 serves the store; the launcher may have opened its socket.
absl::StatusOr<std::unique_ptr<StoreServer>> ServeStore(const LaunchConfig& launch) {
  if (launch.store_socket >= 0) return StoreServer::Start(Socket(launch.store_socket));
  absl::StatusOr<Socket> listener = ListenOn(launch.store_host, launch.store_port);
  if (!listener.ok()) return WithContext(listener.status(), "store of rank 0");
  return StoreServer::Start(*std::move(listener));
}

// Keys of different jobs, and of one job before and after a restart, never meet.
std::string KeyPrefix(const LaunchConfig& launch) {
  return absl::StrCat(launch.job, ".", launch.restart);
}

absl::Status CheckWorld(const Plan& plan, int64_t rank, int64_t world_size) {
  const int64_t ranks = plan.mesh.WorldSize();
  if (ranks == world_size && rank >= 0 && rank < ranks) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "the plan is for ", ranks, " ranks, but this is rank ", rank, " of ", world_size));
}

}  // namespace

Groups::Groups(std::vector<Entry> entries, std::unique_ptr<Control> control,
               std::shared_ptr<void> keep_alive)
    : keep_alive_(std::move(keep_alive)),
      control_(std::move(control)),
      entries_(std::move(entries)) {}

ProcessGroup* Groups::Find(int group, Stream stream) const {
  for (const Entry& entry : entries_) {
    if (entry.use == GroupUse{group, stream}) return entry.group.get();
  }
  return nullptr;
}

absl::Status Groups::RegisterMemory(void* base, int64_t bytes) {
  for (const Entry& entry : entries_) {
    PLANC_RETURN_IF_ERROR(entry.group->RegisterMemory(base, bytes));
  }
  return absl::OkStatus();
}

void Groups::Abort(const std::string& reason) {
  for (const Entry& entry : entries_) entry.group->Abort(reason);
}

absl::Status Groups::Shutdown() { return control_->Barrier("shutdown"); }

absl::StatusOr<Groups> ConnectGroups(const Plan& plan, const LaunchConfig& launch,
                                     const GroupOptions& options) {
  PLANC_RETURN_IF_ERROR(CheckWorld(plan, launch.rank, launch.world_size));
  PLANC_ASSIGN_OR_RETURN(const std::string plan_hash, PlanHash(plan));
  if (launch.world_size == 1) {
    auto control =
        std::make_unique<Control>(nullptr, KeyPrefix(launch), 0, 1, options.operation_timeout);
    return Groups({}, std::move(control), nullptr);
  }
  std::shared_ptr<StoreServer> server;
  int port = launch.store_port;
  if (launch.rank == 0) {
    PLANC_ASSIGN_OR_RETURN(server, ServeStore(launch));
    port = server->port();
  }
  PLANC_ASSIGN_OR_RETURN(std::shared_ptr<StoreClient> store,
                         StoreClient::Connect(launch.store_host, port, options.connect_timeout));
  Control meeting(store, KeyPrefix(launch) + "/start", launch.rank, launch.world_size,
                  options.connect_timeout);
  PLANC_RETURN_IF_ERROR(meeting.AgreeOn("plan hash", plan_hash));

  std::string address = launch.address;
  if (address.empty()) {
    PLANC_ASSIGN_OR_RETURN(address, store->LocalAddress());
  }
  PLANC_ASSIGN_OR_RETURN(const std::shared_ptr<GlooNetwork> network, GlooNetwork::Create(address));
  std::vector<Groups::Entry> entries;
  for (const GroupConnection& connection : ConnectionsOf(plan, launch.rank)) {
    const std::string key = absl::StrCat(KeyPrefix(launch), "/", connection.name, "/",
                                         absl::StrJoin(connection.membership.members, ","));
    PLANC_ASSIGN_OR_RETURN(auto groups,
                           network->Connect(key, {connection.membership}, store.get(),
                                            options.connect_timeout, options.operation_timeout));
    entries.push_back({connection.use, std::move(groups[0])});
  }
  auto control = std::make_unique<Control>(store, KeyPrefix(launch), launch.rank, launch.world_size,
                                           options.operation_timeout);
  return Groups(std::move(entries), std::move(control), server);
}

absl::StatusOr<Groups> ConnectLoopbackGroups(const Plan& plan, int64_t rank, LoopbackWorld* world,
                                             const GroupOptions& options) {
  const int64_t ranks = plan.mesh.WorldSize();
  PLANC_RETURN_IF_ERROR(CheckWorld(plan, rank, ranks));
  std::vector<Groups::Entry> entries;
  for (const GroupConnection& connection : ConnectionsOf(plan, rank)) {
    entries.push_back({connection.use, world->Join(connection.name, connection.membership,
                                                   options.operation_timeout)});
  }
  auto control =
      std::make_unique<Control>(world->store(), "loopback", rank, ranks, options.operation_timeout);
  return Groups(std::move(entries), std::move(control), nullptr);
}

}  // namespace planc
