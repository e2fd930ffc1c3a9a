// What tests of kernels are run with; set by the main function of kernels/test_main.cc.
#ifndef PLANC_KERNELS_TESTED_INSTRUCTION_SET_H_
#define PLANC_KERNELS_TESTED_INSTRUCTION_SET_H_

#include <cstdint>
#include <vector>

#include "kernels/instruction_set.h"

namespace planc::host {

struct KernelTestOptions {
  InstructionSet instruction_set = InstructionSet::kAvx2;
  int64_t seed_factor = 1;
};

// Of this process. main changes it before the first test, and nobody does afterwards.
KernelTestOptions& TestOptions();

// The set that this process tests: its kernels use the vectors of this set, and so do those of
// oneDNN. A test gives it to the kernels (KernelContext, Matmul::Create).
inline InstructionSet TestedInstructionSet() { return TestOptions().instruction_set; }

// The sets up to the tested one whose results have the same bits, the tested one last.
std::vector<InstructionSet> SetsWithTestedBits();

}  // namespace planc::host

#endif  // PLANC_KERNELS_TESTED_INSTRUCTION_SET_H_
