#include "runtime/process_group/gloo_group.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <mutex>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gloo/transport/unbound_buffer.h"
#include "runtime/process_group/exchange_group.h"
#include "runtime/process_group/gloo_mesh.h"
#include "runtime/process_group/group_checks.h"
#include "runtime/process_group/lost_peer_watch.h"
#include "runtime/step/allocation_scope.h"
#include "schemas/status.h"

namespace planc {
namespace {

using Clock = std::chrono::steady_clock;

// The messages of one process group, on gloo's unbound buffers. Each message from one member to
// another has its own slot, counted on both sides, so that calls which do not match time out
// instead of mixing their bytes.
class GlooGroup : public ExchangeGroup {
 public:
  GlooGroup(std::shared_ptr<GlooMesh> mesh, std::shared_ptr<LostPeerWatch> watch,
            GroupMembership membership, absl::Duration timeout)
      : ExchangeGroup(std::move(membership)),
        mesh_(std::move(mesh)),
        watch_(std::move(watch)),
        timeout_(absl::ToChronoMilliseconds(timeout)),
        slots_(this->membership().size()),
        tokens_(this->membership().size()) {
    AddRegion(tokens_.data(), static_cast<int64_t>(tokens_.size()));
    posted_.reserve(2 * slots_.size());
    watch_->Add(this, [this] { WakeFromLostPeer(); });
  }
  ~GlooGroup() override { watch_->Remove(this); }

  const char* transport() const override { return "TCP"; }

  absl::Status RegisterMemory(void* base, int64_t bytes) override {
    if (bytes == 0) return absl::OkStatus();
    std::lock_guard<std::mutex> lock(abort_mutex_);
    AddRegion(static_cast<uint8_t*>(base), bytes);
    return absl::OkStatus();
  }

  void Abort(const std::string& reason) override {
    std::lock_guard<std::mutex> lock(abort_mutex_);
    if (aborted_.load()) return;
    abort_reason_ = reason;
    aborted_.store(true);
    for (const Region& region : regions_) {
      for (const auto& buffer : region.buffers) {
        buffer->abortWaitRecv();
        buffer->abortWaitSend();
      }
    }
    mesh_->Close();
  }

 protected:
  absl::Status Begin(const char* operation) override {
    if (!failure_.ok()) return failure_;
    operation_ = operation;
    if (aborted_.load(std::memory_order_relaxed)) return Fail("");
    deadline_ = Clock::now() + timeout_;
    return absl::OkStatus();
  }

  absl::Status PostSend(int64_t peer, const void* data, int64_t bytes) override {
    return Post(peer, data, bytes, /*is_send=*/true);
  }
  absl::Status PostReceive(int64_t peer, void* data, int64_t bytes) override {
    return Post(peer, data, bytes, /*is_send=*/false);
  }

  absl::Status WaitReceives() override { return Wait(/*sends_too=*/false); }
  absl::Status WaitAll() override { return Wait(/*sends_too=*/true); }

  uint8_t* tokens() override { return tokens_.data(); }

 private:
  // Registered memory, with one gloo buffer for each member: a gloo buffer knows how many of its
  // messages are done, not which.
  struct Region {
    uint8_t* base;
    int64_t bytes;
    std::vector<std::unique_ptr<gloo::transport::UnboundBuffer>> buffers;
  };
  struct Slots {
    uint64_t send = 0;  // of the next message
    uint64_t receive = 0;
  };
  struct Posted {
    gloo::transport::UnboundBuffer* buffer;
    int64_t peer;
    bool is_send;
    bool done;
  };

  void AddRegion(uint8_t* base, int64_t bytes) {
    Region region{base, bytes, {}};
    for (int64_t member = 0; member < membership().size(); ++member) {
      region.buffers.push_back(mesh_->CreateBuffer(base, bytes));
    }
    regions_.push_back(std::move(region));
  }

  absl::Status Post(int64_t peer, const void* data, int64_t bytes, bool is_send) {
    const auto* const begin = static_cast<const uint8_t*>(data);
    for (const Region& region : regions_) {
      if (begin < region.base || begin + bytes > region.base + region.bytes) continue;
      gloo::transport::UnboundBuffer* const buffer = region.buffers[peer].get();
      try {
        const ScopedAllocationScope library(AllocationScope::kLibrary);
        if (is_send) {
          buffer->send(static_cast<int>(peer), slots_[peer].send++, begin - region.base, bytes);
        } else {
          buffer->recv(static_cast<int>(peer), slots_[peer].receive++, begin - region.base, bytes);
        }
      } catch (const std::exception& error) {
        return Fail(error.what());
      }
      posted_.push_back({buffer, peer, is_send, false});
      return absl::OkStatus();
    }
    return UnregisteredMemory(membership(), operation_);
  }

  // False when the group was aborted or WakeFromLostPeer came. Throws what gloo throws.
  static bool WaitFor(Posted* message, std::chrono::milliseconds time) {
    const ScopedAllocationScope library(AllocationScope::kLibrary);
    message->done = message->is_send ? message->buffer->waitSend(nullptr, time)
                                     : message->buffer->waitRecv(nullptr, time);
    return message->done;
  }

  bool AwaitMessage(Posted* message) {
    wait_.fetch_add(1);
    Await(message->peer);
    // Rounded up: when gloo gives up, the deadline has passed.
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline_ - Clock::now());
    return WaitFor(message, std::max(left, std::chrono::milliseconds(1)));
  }

  // Ends a wait for a lost peer that lasts longer than a period of the watch, once. A message that
  // has arrived counts even if its sender is gone since, so the one who waits looks once more; if
  // that wait does not end either, the message will not come.
  void WakeFromLostPeer() {
    const uint64_t wait = wait_.load();
    const int64_t peer = AwaitedMember();
    const bool is_old = std::exchange(wait_seen_, wait) == wait;
    if (!is_old || wait == wait_woken_ || peer < 0 || !mesh_->IsLost(peer)) return;
    wait_woken_ = wait;
    std::lock_guard<std::mutex> lock(abort_mutex_);
    for (const Region& region : regions_) {
      region.buffers[peer]->abortWaitRecv();
      region.buffers[peer]->abortWaitSend();
    }
  }

  absl::Status Wait(bool sends_too) {
    try {
      for (Posted& message : posted_) {
        if (message.done || (message.is_send && !sends_too)) continue;
        if (AwaitMessage(&message)) continue;
        if (aborted_.load() || !AwaitMessage(&message)) return Fail("");
      }
    } catch (const std::exception& error) {
      return Fail(error.what());
    }
    Await(-1);
    if (sends_too) posted_.clear();
    return absl::OkStatus();
  }

  // Decides what has happened and makes it the final status of the group.
  absl::Status Fail(const std::string& gloo_message) {
    if (aborted_.load()) {
      std::lock_guard<std::mutex> lock(abort_mutex_);
      failure_ = AbortedCall(membership(), operation_, abort_reason_);
    } else if (Clock::now() >= deadline_) {
      failure_ = UnansweredCall(membership(), operation_, Unanswered(), absl::FromChrono(timeout_));
    } else {
      failure_ = LostPeers(membership(), operation_, Lost(), gloo_message);
    }
    // The peers must not wait for this member until their own time-out.
    mesh_->Close();
    return failure_;
  }

  // The peers of messages that did not arrive. Gloo has closed the connections after its time-out,
  // so that waiting ends at once.
  std::vector<int64_t> Unanswered() {
    std::set<int64_t> ranks;
    for (Posted& message : posted_) {
      try {
        if (message.done || WaitFor(&message, std::chrono::milliseconds(1))) continue;
      } catch (const std::exception&) {
        // As expected of a message that did not arrive.
      }
      ranks.insert(membership().members[message.peer]);
    }
    return {ranks.begin(), ranks.end()};
  }

  std::vector<int64_t> Lost() {
    std::vector<int64_t> ranks;
    for (int64_t member = 0; member < membership().size(); ++member) {
      if (member == membership().index || !mesh_->RefusesMessages(member)) continue;
      ranks.push_back(membership().members[member]);
    }
    return ranks;
  }

  const std::shared_ptr<GlooMesh> mesh_;
  const std::shared_ptr<LostPeerWatch> watch_;
  const std::chrono::milliseconds timeout_;
  std::vector<Slots> slots_;  // by member
  std::vector<uint8_t> tokens_;
  std::vector<Region> regions_;  // the tokens first
  std::vector<Posted> posted_;   // by the operation in progress
  const char* operation_ = "start";
  Clock::time_point deadline_{};
  absl::Status failure_;
  std::atomic<uint64_t> wait_{0};  // counts waits for one message
  uint64_t wait_seen_ = 0;         // of the watch: by its last look
  uint64_t wait_woken_ = 0;        // of the watch

  std::mutex abort_mutex_;  // abort_reason_, and regions_ against RegisterMemory
  std::atomic<bool> aborted_{false};
  std::string abort_reason_;
};

class GlooTcpNetwork : public GlooNetwork {
 public:
  explicit GlooTcpNetwork(std::unique_ptr<GlooDevice> device) : device_(std::move(device)) {}

  absl::StatusOr<std::vector<std::unique_ptr<ProcessGroup>>> Connect(
      const std::string& key, const std::vector<GroupMembership>& memberships, KeyValueStore* store,
      absl::Duration connect_timeout, absl::Duration operation_timeout) override {
    const GroupMembership& first = memberships.front();
    absl::StatusOr<std::shared_ptr<GlooMesh>> mesh =
        device_->Connect(key, first.index, first.size(), store, connect_timeout);
    if (!mesh.ok()) {
      return WithContext(mesh.status(), absl::StrCat("connecting group ", first.name, " (",
                                                     RankList(first.members), ")"));
    }
    std::vector<std::unique_ptr<ProcessGroup>> groups;
    for (const GroupMembership& membership : memberships) {
      groups.push_back(std::make_unique<GlooGroup>(*mesh, watch_, membership, operation_timeout));
    }
    return groups;
  }

 private:
  const std::unique_ptr<GlooDevice> device_;
  const std::shared_ptr<LostPeerWatch> watch_ = std::make_shared<LostPeerWatch>();
};

}  // namespace

absl::StatusOr<std::shared_ptr<GlooNetwork>> GlooNetwork::Create(const std::string& address,
                                                                 const std::string& secret) {
  PLANC_ASSIGN_OR_RETURN(std::unique_ptr<GlooDevice> device, GlooDevice::Create(address, secret));
  return std::make_shared<GlooTcpNetwork>(std::move(device));
}

}  // namespace planc
