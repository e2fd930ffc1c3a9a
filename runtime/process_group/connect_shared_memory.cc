// How the members of a group meet in shared memory.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "runtime/process_group/group_checks.h"
#include "runtime/process_group/shared_exchange.h"
#include "runtime/process_group/shared_memory_group.h"
#include "schemas/counted.h"
#include "schemas/status.h"

namespace planc {
namespace {

// Begins a message of the first member that tells where the memory is.
constexpr char kLocation = '@';

// The store's keys and the deadline of one group's meeting. The texts that members tell each other
// are empty when all is well, else the reason why the group cannot use shared memory.
class Meeting {
 public:
  Meeting(std::string key, const GroupMembership& membership, KeyValueStore* store,
          absl::Duration timeout)
      : key_(std::move(key)),
        membership_(membership),
        store_(store),
        deadline_(absl::Now() + timeout) {}

  absl::Status TellOthers(const std::string& what, const std::string& text) const {
    const int64_t others = membership_.size() - 1;
    return others == 0 ? absl::OkStatus() : store_->Set(Key(what), text, others);
  }
  absl::Status TellFirst(const std::string& text) const {
    return store_->Set(Key(absl::StrCat("member ", membership_.index)), text, 1);
  }
  absl::StatusOr<std::string> Hear(const std::string& what) const {
    return store_->Get(Key(what), std::max(deadline_ - absl::Now(), absl::Milliseconds(1)));
  }
  // The reasons of all members but the first.
  absl::StatusOr<std::string> HearOthers() const {
    std::string reasons;
    for (int64_t member = 1; member < membership_.size(); ++member) {
      PLANC_ASSIGN_OR_RETURN(const std::string reason, Hear(absl::StrCat("member ", member)));
      if (reason.empty()) continue;
      absl::StrAppend(&reasons, reasons.empty() ? "" : "; ", "rank ", membership_.members[member],
                      ": ", reason);
    }
    return reasons;
  }

 private:
  std::string Key(const std::string& what) const { return absl::StrCat(key_, "/memory/", what); }

  const std::string key_;
  const GroupMembership& membership_;
  KeyValueStore* const store_;
  const absl::Time deadline_;
};

absl::StatusOr<std::string> MakeMemory(const Meeting& meeting, const GroupMembership& membership,
                                       std::unique_ptr<SharedSegment>* segment) {
  const int64_t members = membership.size();
  absl::StatusOr<std::unique_ptr<SharedSegment>> created =
      members > SharedExchange::kMostMembers
          ? absl::UnavailableError(absl::StrCat("the group has more than ",
                                                Counted(SharedExchange::kMostMembers, "member")))
          : SharedSegment::Create(SharedExchange::Bytes(members), membership.index);
  std::string reason(created.status().message());
  PLANC_RETURN_IF_ERROR(meeting.TellOthers(
      "place",
      created.ok() ? absl::StrCat(std::string(1, kLocation), (*created)->location()) : reason));
  if (!created.ok()) return absl::StrCat("rank ", membership.members[0], ": ", reason);
  *segment = *std::move(created);
  PLANC_ASSIGN_OR_RETURN(std::string verdict, meeting.HearOthers());
  PLANC_RETURN_IF_ERROR(meeting.TellOthers("verdict", verdict));
  return verdict;
}

absl::StatusOr<std::string> FindMemory(const Meeting& meeting, const GroupMembership& membership,
                                       std::unique_ptr<SharedSegment>* segment) {
  PLANC_ASSIGN_OR_RETURN(const std::string place, meeting.Hear("place"));
  if (place.empty() || place[0] != kLocation) {
    return absl::StrCat("rank ", membership.members[0], ": ", place);
  }
  auto attached = SharedSegment::Attach(place.substr(1), SharedExchange::Bytes(membership.size()),
                                        membership.index);
  PLANC_RETURN_IF_ERROR(meeting.TellFirst(std::string(attached.status().message())));
  if (attached.ok()) *segment = *std::move(attached);
  return meeting.Hear("verdict");
}

}  // namespace

absl::StatusOr<std::unique_ptr<ProcessGroup>> ConnectSharedMemoryGroup(
    const std::string& key, const GroupMembership& membership, KeyValueStore* store,
    absl::Duration connect_timeout, absl::Duration operation_timeout) {
  const Meeting meeting(key, membership, store, connect_timeout);
  std::unique_ptr<SharedSegment> segment;
  const absl::StatusOr<std::string> verdict = membership.index == 0
                                                  ? MakeMemory(meeting, membership, &segment)
                                                  : FindMemory(meeting, membership, &segment);
  if (!verdict.ok()) {
    return WithContext(verdict.status(), absl::StrCat("connecting group ", membership.name, " (",
                                                      RankList(membership.members), ")"));
  }
  if (!verdict->empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("group ", membership.name, " cannot share memory: ", *verdict));
  }
  return CreateSharedMemoryGroup(std::move(segment), membership, operation_timeout);
}

}  // namespace planc
