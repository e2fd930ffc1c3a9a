#include "kernels/tested_instruction_set.h"

#include <string>

namespace planc::host {

KernelTestOptions& TestOptions() {
  static KernelTestOptions options;
  return options;
}

std::vector<InstructionSet> SetsWithTestedBits() {
  const std::string bits = InstructionSetBits(TestedInstructionSet());
  std::vector<InstructionSet> sets;
  for (const InstructionSet set : InstructionSetsUpTo(TestedInstructionSet())) {
    if (bits == InstructionSetBits(set)) sets.push_back(set);
  }
  return sets;
}

}  // namespace planc::host
