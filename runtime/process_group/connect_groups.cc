#include "runtime/process_group/connect_groups.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/launch/descriptor_limit.h"
#include "runtime/launch/placement.h"
#include "runtime/process_group/descriptor_need.h"
#include "runtime/process_group/gloo_group.h"
#include "runtime/process_group/machine_identity.h"
#include "runtime/process_group/shared_memory_group.h"
#include "runtime/process_group/store_access.h"
#include "runtime/process_group/store_client.h"
#include "schemas/counted.h"
#include "schemas/status.h"

namespace planc {
namespace {

// A store that is gone is not waited for: it is asked for an excuse, and then there is none.
constexpr absl::Duration kStorageConnect = absl::Seconds(5);

// Keys of different jobs, and of one job before and after a restart, never meet.
std::string KeyPrefix(const LaunchConfig& launch) {
  return absl::StrCat(launch.job, ".", launch.restart);
}

absl::Status CheckWorld(const Plan& plan, int64_t rank, int64_t world_size) {
  const int64_t ranks = plan.mesh.WorldSize();
  if (ranks == world_size && rank >= 0 && rank < ranks) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the plan is for ", Counted(ranks, "rank"),
                                                 ", but this is rank ", rank, " of ", world_size));
}

// Strangers get what the rank itself does not need. REQUIRES: CheckDescriptors is OK.
StrangerLimits StrangersBeside(const Plan& plan, int64_t rank) {
  StrangerLimits strangers;
  const int64_t left = DescriptorLimit() - DescriptorsOf(plan, rank).total();
  strangers.most = std::clamp<int64_t>(left, 1, static_cast<int64_t>(strangers.most));
  return strangers;
}

// Every rank tells where it runs; rank 0 compares that with the mesh. Returns this rank's address
// towards its peers: the one that routes to the store, unless that is a loopback address and there
// are other machines.
absl::StatusOr<std::string> AgreeOnPlaces(const Plan& plan, const LaunchConfig& launch,
                                          const StoreClient& store, Control* meeting) {
  RankPlace place{launch.host, launch.local_rank, launch.address, PlacementIdentity()};
  if (place.address.empty()) {
    PLANC_ASSIGN_OR_RETURN(place.address, store.LocalAddress());
  }
  if (launch.source == LaunchSource::kAlone || launch.source == LaunchSource::kLocal) {
    return place.address;
  }
  PLANC_ASSIGN_OR_RETURN(const std::vector<std::string> texts,
                         meeting->Gather("placement", PlaceText(place)));
  std::vector<RankPlace> places;
  for (const std::string& text : texts) {
    PLANC_ASSIGN_OR_RETURN(RankPlace other, ParsePlace(text));
    places.push_back(std::move(other));
  }
  const absl::Status placed = CheckPlacement(places, plan.ranks_per_node, launch.source);
  PLANC_ASSIGN_OR_RETURN(const std::string refusal,
                         meeting->Broadcast("placement", std::string(placed.message())));
  if (!refusal.empty()) return absl::FailedPreconditionError(refusal);
  PLANC_ASSIGN_OR_RETURN(const std::string network,
                         meeting->Broadcast("network", NetworkAddress(places)));
  if (network.empty() || !IsLoopbackAddress(place.address)) return place.address;
  return LocalAddressTowards(network);
}

// Every rank learns which ranks may share memory (MachinesText).
absl::StatusOr<std::string> AgreeOnMachines(const LaunchConfig& launch, const GroupOptions& options,
                                            Control* meeting) {
  if (options.transport != TransportChoice::kAutomatic) return "";
  PLANC_ASSIGN_OR_RETURN(const std::vector<std::string> identities,
                         meeting->Gather("machine", MachineIdentity(launch.host)));
  return meeting->Broadcast("machine", MachinesText(identities));
}

// Connects one group after the other, each by the best transport that its members have.
class Connector {
 public:
  Connector(std::string address, std::string secret, std::string machines, KeyValueStore* store,
            const GroupOptions& options)
      : address_(std::move(address)),
        secret_(std::move(secret)),
        machines_(std::move(machines)),
        store_(store),
        options_(options) {}

  absl::Status Connect(const std::string& key_prefix, const GroupConnection& connection) {
    const std::string key = absl::StrCat(key_prefix, "/", connection.name, "/",
                                         absl::StrJoin(connection.membership.members, ","));
    if (options_.transport == TransportChoice::kSharedMemory ||
        (options_.transport == TransportChoice::kAutomatic &&
         OnOneMachine(machines_, connection.membership.members))) {
      auto group = ConnectSharedMemoryGroup(key, connection.membership, store_,
                                            options_.connect_timeout, options_.operation_timeout);
      if (group.ok()) {
        entries_.push_back({connection.use, *std::move(group)});
        return absl::OkStatus();
      }
      // All members have received the same refusal.
      const bool may_use_tcp = options_.transport == TransportChoice::kAutomatic &&
                               absl::IsFailedPrecondition(group.status());
      if (!may_use_tcp) return group.status();
      notice_ = std::string(group.status().message());
    }
    if (network_ == nullptr) {
      PLANC_ASSIGN_OR_RETURN(network_, GlooNetwork::Create(address_, secret_));
    }
    PLANC_ASSIGN_OR_RETURN(auto groups,
                           network_->Connect(key, {connection.membership}, store_,
                                             options_.connect_timeout, options_.operation_timeout));
    entries_.push_back({connection.use, std::move(groups[0])});
    return absl::OkStatus();
  }

  std::vector<Groups::Entry> TakeEntries() { return std::move(entries_); }
  const std::string& notice() const { return notice_; }

 private:
  const std::string address_;
  const std::string secret_;
  const std::string machines_;
  KeyValueStore* const store_;
  const GroupOptions options_;
  std::shared_ptr<GlooNetwork> network_;  // of the groups over TCP, made for the first of them
  std::vector<Groups::Entry> entries_;
  std::string notice_;  // why the last group that could not share memory did not
};

Groups::Background BackgroundOf(std::shared_ptr<KeyValueStore> store, const std::string& prefix,
                                int64_t rank, int64_t world_size, absl::Duration timeout) {
  Groups::Background background;
  background.store = std::make_shared<CancellableStore>(std::move(store));
  background.control = std::make_unique<Control>(background.store, prefix + "/background", rank,
                                                 world_size, timeout);
  return background;
}

// Over a connection of its own, made when it is needed: others may be waiting on theirs.
std::unique_ptr<StorageWatch> WatchStorage(const LaunchConfig& launch,
                                           std::shared_ptr<StoreAccess> access,
                                           const GroupOptions& options) {
  StorageWatch::Options watch;
  watch.connect = [access = std::move(access),
                   timeout = std::min(options.connect_timeout, kStorageConnect)]()
      -> absl::StatusOr<std::shared_ptr<KeyValueStore>> { return access->Connect(timeout); };
  watch.prefix = KeyPrefix(launch);
  watch.rank = launch.rank;
  watch.patience = {options.stall_timeout / 4, options.agreement_timeout / 4};
  return std::make_unique<StorageWatch>(std::move(watch));
}

}  // namespace

Groups::Groups(std::vector<Entry> entries, std::unique_ptr<Control> control, Background background,
               std::string notice, CommonInstructionSet instruction_set,
               std::shared_ptr<void> keep_alive, std::unique_ptr<StorageWatch> storage)
    : keep_alive_(std::move(keep_alive)),
      storage_(std::move(storage)),
      control_(std::move(control)),
      background_(std::move(background)),
      notice_(std::move(notice)),
      instruction_set_(std::move(instruction_set)),
      entries_(std::move(entries)) {
  control_->ExcuseBy(storage_.get(), /*background=*/false);
  background_.control->ExcuseBy(storage_.get(), /*background=*/true);
}

ProcessGroup* Groups::Find(int group, Stream stream) const {
  for (const Entry& entry : entries_) {
    if (entry.use == GroupUse{group, stream}) return entry.group.get();
  }
  return nullptr;
}

std::string Groups::TransportText() const {
  std::map<std::string, int> counts;
  for (const Entry& entry : entries_) ++counts[entry.group->transport()];
  std::vector<std::string> parts;
  for (const auto& [transport, count] : counts) {
    parts.push_back(absl::StrCat(count, " over ", transport));
  }
  return absl::StrCat("process groups of rank ", control_->rank(), ": ", absl::StrJoin(parts, ", "),
                      notice_.empty() ? "" : "\n  ", notice_);
}

std::vector<std::string> Groups::Notices() const {
  std::vector<std::string> notices;
  if (!entries_.empty()) notices.push_back(TransportText());
  if (!instruction_set_.notice.empty()) notices.push_back(instruction_set_.notice);
  return notices;
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
        std::make_unique<Control>(nullptr, KeyPrefix(launch), 0, 1, options.agreement_timeout);
    Groups::Background background =
        BackgroundOf(nullptr, KeyPrefix(launch), 0, 1, options.agreement_timeout);
    return Groups({}, std::move(control), std::move(background), "", {options.instruction_set, ""},
                  nullptr);
  }
  PLANC_RETURN_IF_ERROR(CheckDescriptors(plan, launch.rank, DescriptorLimit()));
  PLANC_ASSIGN_OR_RETURN(const std::shared_ptr<StoreAccess> access,
                         StoreAccess::Open(launch, KeyPrefix(launch), options.secret_folder,
                                           StrangersBeside(plan, launch.rank)));
  PLANC_ASSIGN_OR_RETURN(const std::shared_ptr<StoreClient> store,
                         access->Connect(options.connect_timeout));
  PLANC_RETURN_IF_ERROR(store->Join(launch.rank));
  Control meeting(store, KeyPrefix(launch) + "/start", launch.rank, launch.world_size,
                  options.connect_timeout);
  PLANC_RETURN_IF_ERROR(meeting.AgreeOn("plan hash", plan_hash));
  PLANC_ASSIGN_OR_RETURN(CommonInstructionSet instruction_set,
                         AgreeOnInstructionSet(options.instruction_set, &meeting));

  PLANC_ASSIGN_OR_RETURN(const std::string address, AgreeOnPlaces(plan, launch, *store, &meeting));
  PLANC_ASSIGN_OR_RETURN(const std::string machines, AgreeOnMachines(launch, options, &meeting));
  Connector connector(address, access->secret(), machines, store.get(), options);
  for (const GroupConnection& connection : ConnectionsOf(plan, launch.rank)) {
    PLANC_RETURN_IF_ERROR(connector.Connect(KeyPrefix(launch), connection));
  }
  auto control = std::make_unique<Control>(store, KeyPrefix(launch), launch.rank, launch.world_size,
                                           options.agreement_timeout);
  PLANC_ASSIGN_OR_RETURN(std::shared_ptr<StoreClient> background_store,
                         access->Connect(options.connect_timeout));
  Groups::Background background =
      BackgroundOf(std::move(background_store), KeyPrefix(launch), launch.rank, launch.world_size,
                   options.agreement_timeout);
  PLANC_RETURN_IF_ERROR(meeting.Barrier("connected"));
  access->RemoveSecretFile();
  return Groups(connector.TakeEntries(), std::move(control), std::move(background),
                connector.notice(), std::move(instruction_set), access,
                WatchStorage(launch, access, options));
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
      std::make_unique<Control>(world->store(), "loopback", rank, ranks, options.agreement_timeout);
  Groups::Background background =
      BackgroundOf(world->store(), "loopback", rank, ranks, options.agreement_timeout);
  StorageWatch::Options storage;
  storage.connect = [store = world->store()]() -> absl::StatusOr<std::shared_ptr<KeyValueStore>> {
    return store;
  };
  storage.prefix = "loopback";
  storage.rank = rank;
  storage.patience = {options.stall_timeout / 4, options.agreement_timeout / 4};
  return Groups(std::move(entries), std::move(control), std::move(background), "",
                {options.instruction_set, ""}, nullptr,
                std::make_unique<StorageWatch>(std::move(storage)));
}

}  // namespace planc
