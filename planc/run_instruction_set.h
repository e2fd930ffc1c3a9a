#ifndef PLANC_PLANC_RUN_INSTRUCTION_SET_H_
#define PLANC_PLANC_RUN_INSTRUCTION_SET_H_

#include <string>

#include "absl/status/statusor.h"
#include "kernels/instruction_set.h"

namespace planc {

// What a rank may compute with: all that its machine has, or the smaller set `asked`, which is a
// name or empty.
// Errors: InvalidArgument for a name that is none, and for a set that the machine lacks;
// FailedPrecondition on a machine that lacks them all.
absl::StatusOr<host::InstructionSet> ChooseInstructionSet(const std::string& asked);
// The same on a machine whose largest set is `largest`.
absl::StatusOr<host::InstructionSet> ChooseInstructionSet(const std::string& asked,
                                                          host::InstructionSet largest);

}  // namespace planc

#endif  // PLANC_PLANC_RUN_INSTRUCTION_SET_H_
