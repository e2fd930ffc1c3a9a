// Handlers of collectives: gradient sync, parameter gathers and tensor-parallel reductions.
#include "absl/status/status.h"
#include "runtime/process_group/process_group.h"
#include "runtime/step/handlers.h"
#include "runtime/step/op_view.h"

namespace planc {

absl::Status HandleAllReduce(const PreparedInstruction& instruction, StepContext& context) {
  const OpView<Opcode::kAllReduce> op(instruction, context);
  return instruction.group->AllReduce(
      op.Operand<"x">(), op.Integer<"count">(), op.TypeOf<"x">(),
      op.Integer<"maximum">() != 0 ? ReduceOp::kMax : ReduceOp::kSum, op.Operand<"scratch">());
}

absl::Status HandleReduceScatter(const PreparedInstruction& instruction, StepContext& context) {
  const OpView<Opcode::kReduceScatter> op(instruction, context);
  return instruction.group->ReduceScatter(op.Operand<"x">(), op.Operand<"y">(),
                                          op.Integer<"count">(), op.TypeOf<"x">(),
                                          op.Operand<"scratch">());
}

absl::Status HandleAllGather(const PreparedInstruction& instruction, StepContext& context) {
  const OpView<Opcode::kAllGather> op(instruction, context);
  return instruction.group->AllGather(op.Operand<"x">(), op.Operand<"y">(), op.Integer<"count">(),
                                      op.TypeOf<"x">());
}

}  // namespace planc
