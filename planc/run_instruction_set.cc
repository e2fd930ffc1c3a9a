#include "planc/run_instruction_set.h"

#include <optional>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "schemas/status.h"

namespace planc {

absl::StatusOr<host::InstructionSet> ChooseInstructionSet(const std::string& asked) {
  PLANC_ASSIGN_OR_RETURN(const host::InstructionSet largest, host::DetectInstructionSet());
  return ChooseInstructionSet(asked, largest);
}

absl::StatusOr<host::InstructionSet> ChooseInstructionSet(const std::string& asked,
                                                          host::InstructionSet largest) {
  if (asked.empty()) return largest;
  const std::optional<host::InstructionSet> set = host::FindInstructionSet(asked);
  if (!set.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--instruction-set `", asked, "` is none of ", host::InstructionSetNames()));
  }
  if (*set > largest) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--instruction-set=", asked, ": this machine lacks ", host::InstructionSetNeeds(*set),
        "; the largest set that it has is ", host::InstructionSetName(largest)));
  }
  return *set;
}

}  // namespace planc
