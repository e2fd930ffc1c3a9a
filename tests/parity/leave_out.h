// Plans without one of their modules: what a compiler with that mistake would emit.
#ifndef PLANC_TESTS_PARITY_LEAVE_OUT_H_
#define PLANC_TESTS_PARITY_LEAVE_OUT_H_

#include <string>
#include <vector>

#include "schemas/plan.h"

namespace planc {

// One way to leave something out. `apply` returns false and changes nothing where the plan has no
// such module. The plan that it leaves is consistent: what read the module's output reads its input
// instead, forward and backward, so that nothing but the numbers tells.
struct LeftOut {
  std::string name;
  bool forward = false;  // the losses must tell, too
  bool (*apply)(Plan& plan) = nullptr;
};

// All of them.
std::vector<LeftOut> AllLeftOut();

// Every instruction of the step program whose loss the parity of one step can show: its kernels on
// local memory, but for those that set to zero what is zero before the first step, and the maximum
// of logits, which cancels from the loss and only keeps exponentials in range.
struct InstructionPlace {
  int block = 0;
  int instruction = 0;
};
std::vector<InstructionPlace> StepInstructions(const Plan& plan);

}  // namespace planc

#endif  // PLANC_TESTS_PARITY_LEAVE_OUT_H_
