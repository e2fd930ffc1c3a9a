#include "runtime/process_group/common_instruction_set.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/process_group/group_checks.h"
#include "schemas/status.h"

namespace planc {
namespace {

constexpr char kTag[] = "instruction set";

// "the job runs on instruction set avx2, which rank 1 has; ranks 0, 2 have avx512". Empty where all
// ranks have one set. `ranks` is not empty.
std::string NoticeOf(const std::map<host::InstructionSet, std::vector<int64_t>>& ranks) {
  if (ranks.size() == 1) return "";
  std::vector<std::string> larger;
  for (const auto& [set, which] : ranks) {
    if (set == ranks.begin()->first) continue;
    larger.push_back(absl::StrCat(RankList(which), which.size() == 1 ? " has " : " have ",
                                  host::InstructionSetName(set)));
  }
  const auto& [set, which] = *ranks.begin();
  return absl::StrCat("the job runs on instruction set ", host::InstructionSetName(set), ", ",
                      RankList(which), which.size() == 1 ? " has" : " have", " no larger one; ",
                      absl::StrJoin(larger, "; "));
}

}  // namespace

absl::StatusOr<CommonInstructionSet> AgreeOnInstructionSet(host::InstructionSet own,
                                                           Control* control) {
  PLANC_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                         control->Gather(kTag, host::InstructionSetName(own)));
  std::map<host::InstructionSet, std::vector<int64_t>> ranks;
  std::string unknown;
  for (size_t rank = 0; rank < names.size(); ++rank) {
    const std::optional<host::InstructionSet> set = host::FindInstructionSet(names[rank]);
    if (set.has_value()) ranks[*set].push_back(static_cast<int64_t>(rank));
    if (!set.has_value()) unknown = absl::StrCat("rank ", rank, " has `", names[rank], "`");
  }
  CommonInstructionSet common;
  if (!ranks.empty()) {
    common.set = ranks.begin()->first;
    common.notice = NoticeOf(ranks);
  }
  PLANC_ASSIGN_OR_RETURN(
      const std::string chosen,
      control->Broadcast(kTag, unknown.empty() ? host::InstructionSetName(common.set) : unknown));
  const std::optional<host::InstructionSet> set = host::FindInstructionSet(chosen);
  if (!set.has_value()) {
    return absl::FailedPreconditionError(absl::StrCat("instruction sets of the ranks: ", chosen,
                                                      ", which rank 0 does not know; start all "
                                                      "ranks with the same planc"));
  }
  common.set = *set;
  PLANC_ASSIGN_OR_RETURN(common.notice, control->Broadcast(kTag, common.notice));
  return common;
}

}  // namespace planc
