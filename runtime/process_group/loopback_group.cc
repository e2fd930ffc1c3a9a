#include "runtime/process_group/loopback_group.h"

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "runtime/process_group/exchange_group.h"
#include "runtime/process_group/group_checks.h"
#include "runtime/process_group/memory_store.h"
#include "runtime/step/allocation_scope.h"
#include "schemas/status.h"

namespace planc {

// The messages in flight among the members of one group. A message is copied from the sender's
// memory to the receiver's when both are posted; before that, neither is done.
class LoopbackChannel {
 public:
  struct Message {
    int64_t from = 0;
    int64_t to = 0;
    uint8_t* data = nullptr;
    int64_t bytes = 0;
  };

  explicit LoopbackChannel(int64_t size) : lost_(size) {}

  void Post(const Message& message, bool is_send) {
    std::lock_guard<std::mutex> lock(mutex_);
    std::vector<Message>& partners = is_send ? receives_ : sends_;
    const auto partner = std::find_if(partners.begin(), partners.end(), [&](const Message& other) {
      return other.from == message.from && other.to == message.to;
    });
    if (partner == partners.end()) {
      (is_send ? sends_ : receives_).push_back(message);
      return;
    }
    const Message& source = is_send ? message : *partner;
    const Message& target = is_send ? *partner : message;
    std::memcpy(target.data, source.data, std::min(source.bytes, target.bytes));
    partners.erase(partner);
    changed_.notify_all();
  }

  // Waits until no message to `member` (and, with `sends_too`, from it) is pending, or until a peer
  // it waits for is lost, or `stop(awaited members)` holds. The members it still waits for.
  template <typename Stop>
  std::vector<int64_t> Wait(int64_t member, bool sends_too, absl::Time deadline, Stop stop,
                            std::vector<int64_t>* lost) {
    std::unique_lock<std::mutex> lock(mutex_);
    std::vector<int64_t> awaited;
    changed_.wait_until(lock, absl::ToChronoTime(deadline), [&] {
      awaited = Awaited(member, sends_too);
      lost->clear();
      if (lost_[member]) {  // left through another group on the same wires: nothing will come
        awaited.push_back(member);
        lost->push_back(member);
        return true;
      }
      for (const int64_t peer : awaited) {
        if (lost_[peer]) lost->push_back(peer);
      }
      return awaited.empty() || !lost->empty() || stop(awaited);
    });
    return awaited;
  }

  // Marks the member as gone and forgets its messages: its memory may go away.
  void Leave(int64_t member) {
    std::lock_guard<std::mutex> lock(mutex_);
    lost_[member] = true;
    const auto is_own_send = [member](const Message& m) { return m.from == member; };
    const auto is_own_receive = [member](const Message& m) { return m.to == member; };
    sends_.erase(std::remove_if(sends_.begin(), sends_.end(), is_own_send), sends_.end());
    receives_.erase(std::remove_if(receives_.begin(), receives_.end(), is_own_receive),
                    receives_.end());
    changed_.notify_all();
  }

 private:
  std::vector<int64_t> Awaited(int64_t member, bool sends_too) const {
    std::vector<int64_t> peers;
    for (const Message& message : receives_) {
      if (message.to == member) peers.push_back(message.from);
    }
    for (const Message& message : sends_) {
      if (sends_too && message.from == member) peers.push_back(message.to);
    }
    std::sort(peers.begin(), peers.end());
    peers.erase(std::unique(peers.begin(), peers.end()), peers.end());
    return peers;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Message> sends_;     // posted first, in order
  std::vector<Message> receives_;  // posted first, in order
  std::vector<bool> lost_;
};

namespace {

class LoopbackGroup : public ExchangeGroup {
 public:
  LoopbackGroup(std::shared_ptr<LoopbackChannel> channel, GroupMembership membership,
                absl::Duration timeout)
      : ExchangeGroup(std::move(membership)),
        channel_(std::move(channel)),
        timeout_(timeout),
        tokens_(this->membership().size()) {
    memory_.Add(tokens_.data(), static_cast<int64_t>(tokens_.size()));
  }
  ~LoopbackGroup() override { channel_->Leave(membership().index); }

  const char* transport() const override { return "one process"; }

  absl::Status RegisterMemory(void* base, int64_t bytes) override {
    memory_.Add(base, bytes);
    return absl::OkStatus();
  }

  void Abort(const std::string& reason) override {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (aborted_) return;
      aborted_ = true;
      abort_reason_ = reason;
    }
    channel_->Leave(membership().index);
  }

 protected:
  absl::Status Begin(const char* operation) override {
    if (!failure_.ok()) return failure_;
    operation_ = operation;
    deadline_ = absl::Now() + timeout_;
    return aborted() ? Fail({}, {}) : absl::OkStatus();
  }

  absl::Status PostSend(int64_t peer, const void* data, int64_t bytes) override {
    return Post(membership().index, peer, const_cast<void*>(data), bytes);
  }
  absl::Status PostReceive(int64_t peer, void* data, int64_t bytes) override {
    return Post(peer, membership().index, data, bytes);
  }

  absl::Status WaitReceives() override { return Wait(/*sends_too=*/false); }
  absl::Status WaitAll() override { return Wait(/*sends_too=*/true); }
  uint8_t* tokens() override { return tokens_.data(); }

 private:
  absl::Status Post(int64_t from, int64_t to, void* data, int64_t bytes) {
    const ScopedAllocationScope library(AllocationScope::kLibrary);
    PLANC_RETURN_IF_ERROR(memory_.Check(membership(), operation_, data, bytes));
    channel_->Post({from, to, static_cast<uint8_t*>(data), bytes}, from == membership().index);
    return absl::OkStatus();
  }

  bool aborted() {
    std::lock_guard<std::mutex> lock(mutex_);
    return aborted_;
  }

  absl::Status Wait(bool sends_too) {
    const ScopedAllocationScope library(AllocationScope::kLibrary);
    std::vector<int64_t> lost;
    const auto stop = [this](const std::vector<int64_t>& awaited) {
      Await(awaited.front());
      return aborted();
    };
    const std::vector<int64_t> awaited =
        channel_->Wait(membership().index, sends_too, deadline_, stop, &lost);
    Await(-1);
    return awaited.empty() ? absl::OkStatus() : Fail(awaited, lost);
  }

  std::vector<int64_t> Ranks(const std::vector<int64_t>& indices) const {
    std::vector<int64_t> ranks;
    for (const int64_t index : indices) ranks.push_back(membership().members[index]);
    return ranks;
  }

  absl::Status Fail(const std::vector<int64_t>& awaited, const std::vector<int64_t>& lost) {
    if (aborted()) {
      failure_ = AbortedCall(membership(), operation_, abort_reason_);
    } else if (!lost.empty()) {
      failure_ = LostPeers(membership(), operation_, Ranks(lost));
    } else {
      failure_ = UnansweredCall(membership(), operation_, Ranks(awaited), timeout_);
    }
    channel_->Leave(membership().index);
    return failure_;
  }

  const std::shared_ptr<LoopbackChannel> channel_;
  const absl::Duration timeout_;
  std::vector<uint8_t> tokens_;
  RegisteredMemory memory_;
  const char* operation_ = "start";
  absl::Time deadline_;
  absl::Status failure_;

  std::mutex mutex_;
  bool aborted_ = false;
  std::string abort_reason_;
};

}  // namespace

LoopbackWorld::LoopbackWorld() : store_(std::make_shared<MemoryStore>()) {}

LoopbackWorld::~LoopbackWorld() = default;

std::unique_ptr<ProcessGroup> LoopbackWorld::Join(const std::string& wires,
                                                  const GroupMembership& membership,
                                                  absl::Duration operation_timeout) {
  const std::string key = absl::StrCat(wires, ":", absl::StrJoin(membership.members, ","));
  std::lock_guard<std::mutex> lock(mutex_);
  std::shared_ptr<LoopbackChannel>& channel = channels_[key];
  if (channel == nullptr) channel = std::make_shared<LoopbackChannel>(membership.size());
  return std::make_unique<LoopbackGroup>(channel, membership, operation_timeout);
}

}  // namespace planc
