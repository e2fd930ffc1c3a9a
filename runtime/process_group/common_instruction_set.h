#ifndef PLANC_RUNTIME_PROCESS_GROUP_COMMON_INSTRUCTION_SET_H_
#define PLANC_RUNTIME_PROCESS_GROUP_COMMON_INSTRUCTION_SET_H_

#include <string>

#include "absl/status/statusor.h"
#include "kernels/instruction_set.h"
#include "runtime/process_group/control.h"

namespace planc {

// What the kernels of all ranks of a job use.
struct CommonInstructionSet {
  host::InstructionSet set = host::InstructionSet::kAvx2;
  std::string notice;  // which ranks it is owed to, where not all offer the same; else empty
};

// Every rank tells the largest instruction set that it may use, and learns the smallest of them:
// the job runs on that one, on every rank. The same answer everywhere.
// Errors: those of Control; FailedPrecondition when a rank names a set that rank 0 does not know.
absl::StatusOr<CommonInstructionSet> AgreeOnInstructionSet(host::InstructionSet own,
                                                           Control* control);

}  // namespace planc

#endif  // PLANC_RUNTIME_PROCESS_GROUP_COMMON_INSTRUCTION_SET_H_
