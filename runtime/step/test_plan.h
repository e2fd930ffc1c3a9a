#ifndef PLANC_RUNTIME_STEP_TEST_PLAN_H_
#define PLANC_RUNTIME_STEP_TEST_PLAN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "schemas/plan.h"

namespace planc {

// Builds small plans by hand, for tests: one rank class, one block, and buffers that each have a
// pool of their own with `slots` slots.
class TestPlan {
 public:
  // `mesh` with all other axes 1.
  explicit TestPlan(Axis axis = Axis::kTp, int64_t size = 1);

  // A buffer of `elements` elements; returns its index. The pool has the same index.
  int AddBuffer(const std::string& name, MemoryKind kind, DType dtype, int64_t elements,
                int slots = 1);
  // A group over `axis`; returns its index.
  int AddGroup(const std::string& name, Axis axis);
  // An event recorded on `stream`, with a cell for each slot of the pool of `buffer`.
  int AddEvent(const std::string& name, int buffer, Stream stream);
  // Appends an instruction to the block; operands are whole buffers.
  Instruction& Add(Opcode opcode, const std::vector<int>& buffers,
                   const std::vector<int64_t>& integers = {},
                   const std::vector<double>& reals = {});
  // A wait or record of `event` in the slot that the buffer's binding selects.
  EventRef Ref(int event);

  // Makes a program of calls of the block, one for each list of slots (one slot per buffer, in the
  // order of AddBuffer) and runs the list `count` times with the microbatch growing by 1.
  void SetProgram(ProgramKind kind, const std::vector<std::vector<int32_t>>& slots,
                  int64_t count = 1);

  // The plan with arenas laid out.
  const Plan& Finish();
  Plan& plan() { return plan_; }

 private:
  Block& block() { return plan_.blocks[0]; }

  Plan plan_;
  std::vector<int32_t> slots_;  // by pool
};

}  // namespace planc

#endif  // PLANC_RUNTIME_STEP_TEST_PLAN_H_
