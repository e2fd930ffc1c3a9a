// Handlers of transfers between pipeline neighbours.
#include "absl/status/status.h"
#include "runtime/process_group/process_group.h"
#include "runtime/step/handlers.h"
#include "runtime/step/op_view.h"

namespace planc {

absl::Status HandleSend(const PreparedInstruction& instruction, StepContext& context) {
  const OpView<Opcode::kSend> op(instruction, context);
  return instruction.group->Send(instruction.peer, op.Operand<"x">(),
                                 op.Integer<"count">() * SizeOf(op.TypeOf<"x">()));
}

absl::Status HandleRecv(const PreparedInstruction& instruction, StepContext& context) {
  const OpView<Opcode::kRecv> op(instruction, context);
  return instruction.group->Receive(instruction.peer, op.Operand<"x">(),
                                    op.Integer<"count">() * SizeOf(op.TypeOf<"x">()));
}

}  // namespace planc
