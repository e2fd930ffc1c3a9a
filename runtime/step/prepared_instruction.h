#ifndef PLANC_RUNTIME_STEP_PREPARED_INSTRUCTION_H_
#define PLANC_RUNTIME_STEP_PREPARED_INSTRUCTION_H_

#include <array>
#include <cstdint>

#include "absl/status/status.h"
#include "kernels/instruction_set.h"
#include "kernels/matmul.h"
#include "runtime/process_group/process_group.h"
#include "schemas/dtype.h"
#include "schemas/opcode.h"

namespace planc {

struct StepContext;
struct PreparedInstruction;

// Carries out one instruction on the calling thread. One function per row of opcode.def
// (handlers.h). Allocates nothing when it succeeds.
using Handler = absl::Status (*)(const PreparedInstruction& instruction, StepContext& context);

// An operand bound to this rank's memory: its address in slot s of its pool is base + s * stride.
struct PreparedOperand {
  char* base = nullptr;
  int64_t stride = 0;
  int32_t binding = 0;  // index into the slots of the call
  DType dtype = DType::kF32;
  int64_t bytes = 0;
};

inline constexpr int kMaxOperands = 9;
inline constexpr int kMaxIntegers = 5;
inline constexpr int kMaxReals = 1;

// An instruction with everything looked up that does not change from call to call.
struct PreparedInstruction {
  Opcode opcode = Opcode::kZero;
  Handler handler = nullptr;
  std::array<PreparedOperand, kMaxOperands> operands{};
  int operand_count = 0;
  std::array<int64_t, kMaxIntegers> integers{};
  std::array<double, kMaxReals> reals{};
  int threads = 1;                                                     // that its kernel may use
  host::InstructionSet instruction_set = host::InstructionSet::kAvx2;  // likewise
  host::Matmul* matmul = nullptr;                                      // of matmul and matmul_add
  ProcessGroup* group = nullptr;  // of collectives and transfers
  int64_t peer = -1;              // member of `group` that a transfer goes to or comes from
};

}  // namespace planc

#endif  // PLANC_RUNTIME_STEP_PREPARED_INSTRUCTION_H_
