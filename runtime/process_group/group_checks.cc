#include "runtime/process_group/group_checks.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/process_group/ordered_reduce.h"
#include "schemas/counted.h"

namespace planc {
namespace {

constexpr size_t kRanksNamed = 8;

std::string Where(const GroupMembership& membership, const char* operation) {
  return absl::StrCat("group ", membership.name, " (", RankList(membership.members),
                      "): ", operation, " on rank ", membership.members[membership.index]);
}

}  // namespace

std::string RankList(std::vector<int64_t> ranks) {
  const size_t count = ranks.size();
  if (count > kRanksNamed) ranks.resize(kRanksNamed);
  return absl::StrCat(count == 1 ? "rank " : "ranks ", absl::StrJoin(ranks, ", "),
                      count > kRanksNamed ? ", ..." : "");
}

absl::Status CheckReducible(const GroupMembership& membership, const char* operation, DType dtype) {
  if (IsReducible(dtype)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("group ", membership.name, ": ", operation,
                                                 " does not reduce ", DTypeName(dtype)));
}

absl::Status CheckPeer(const GroupMembership& membership, const char* operation, int64_t peer) {
  if (peer >= 0 && peer < membership.size() && peer != membership.index) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("group ", membership.name, ": ", operation,
                                                 ": no peer ", peer, " among ",
                                                 Counted(membership.size(), "member")));
}

absl::Status AbortedCall(const GroupMembership& membership, const char* operation,
                         const std::string& reason) {
  return absl::AbortedError(absl::StrCat(Where(membership, operation), ": aborted: ", reason));
}

absl::Status UnansweredCall(const GroupMembership& membership, const char* operation,
                            const std::vector<int64_t>& ranks, absl::Duration timeout) {
  return absl::DeadlineExceededError(absl::StrCat(Where(membership, operation), ": no answer from ",
                                                  RankList(ranks), " for ",
                                                  absl::FormatDuration(timeout)));
}

absl::Status LostPeers(const GroupMembership& membership, const char* operation,
                       const std::vector<int64_t>& ranks, const std::string& cause) {
  return absl::UnavailableError(absl::StrCat(
      Where(membership, operation), ": ",
      ranks.empty() ? cause : absl::StrCat("lost the connection to ", RankList(ranks))));
}

absl::Status UnregisteredMemory(const GroupMembership& membership, const char* operation) {
  return absl::InvalidArgumentError(
      absl::StrCat(Where(membership, operation), ": memory is not registered"));
}

void RegisteredMemory::Add(const void* base, int64_t bytes) {
  ranges_.push_back({static_cast<const uint8_t*>(base), bytes});
}

absl::Status RegisteredMemory::Check(const GroupMembership& membership, const char* operation,
                                     const void* data, int64_t bytes) const {
  const auto* const begin = static_cast<const uint8_t*>(data);
  const bool registered = std::any_of(ranges_.begin(), ranges_.end(), [&](const Range& range) {
    return begin >= range.base && begin + bytes <= range.base + range.bytes;
  });
  return registered ? absl::OkStatus() : UnregisteredMemory(membership, operation);
}

}  // namespace planc
