#ifndef PLANC_RUNTIME_STEP_HANDLERS_H_
#define PLANC_RUNTIME_STEP_HANDLERS_H_

#include "absl/status/status.h"
#include "runtime/step/prepared_instruction.h"
#include "runtime/step/step_context.h"
#include "schemas/opcode.h"

namespace planc {

// One handler per row of opcode.def, so a row without one does not link. They are defined by
// family in handle_*.cc; each hands its operands to one kernel or process group.
#define X(name, text, kind, operands, integers, reals) \
  absl::Status Handle##name(const PreparedInstruction& instruction, StepContext& context);
#include "schemas/opcode.def"
#undef X

// The handler of `opcode`.
Handler HandlerOf(Opcode opcode);

}  // namespace planc

#endif  // PLANC_RUNTIME_STEP_HANDLERS_H_
