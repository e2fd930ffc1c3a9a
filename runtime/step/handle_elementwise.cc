// Handlers of activation functions and of elementwise operations.
#include <cstddef>

#include "absl/status/status.h"
#include "kernels/activation.h"
#include "kernels/elementwise.h"
#include "runtime/step/handlers.h"
#include "runtime/step/op_view.h"

namespace planc {

absl::Status HandleSwigluForward(const PreparedInstruction& instruction, StepContext& context) {
  const OpView<Opcode::kSwigluForward> op(instruction, context);
  host::KernelContext kernel = op.Kernel();
  host::SwiGluForward({.tokens = op.Integer<"rows">(),
                       .ffn = op.Integer<"columns">(),
                       .gate_up = op.Operand<"gate_up">(),
                       .s = op.Operand<"y">()},
                      op.TypeOf<"y">(), kernel);
  return absl::OkStatus();
}

absl::Status HandleSwigluBackward(const PreparedInstruction& instruction, StepContext& context) {
  const OpView<Opcode::kSwigluBackward> op(instruction, context);
  host::KernelContext kernel = op.Kernel();
  host::SwiGluBackward({.tokens = op.Integer<"rows">(),
                        .ffn = op.Integer<"columns">(),
                        .gate_up = op.Operand<"gate_up">(),
                        .ds = op.Operand<"dy">(),
                        .dgate_up = op.Operand<"dgate_up">()},
                       op.TypeOf<"dy">(), kernel);
  return absl::OkStatus();
}

absl::Status HandleGeluForward(const PreparedInstruction& instruction, StepContext& context) {
  const OpView<Opcode::kGeluForward> op(instruction, context);
  host::KernelContext kernel = op.Kernel();
  host::GeluForward({.elements = op.Integer<"rows">() * op.Integer<"columns">(),
                     .x = op.Operand<"x">(),
                     .y = op.Operand<"y">()},
                    op.TypeOf<"x">(), kernel);
  return absl::OkStatus();
}

absl::Status HandleGeluBackward(const PreparedInstruction& instruction, StepContext& context) {
  const OpView<Opcode::kGeluBackward> op(instruction, context);
  host::KernelContext kernel = op.Kernel();
  host::GeluBackward({.elements = op.Integer<"rows">() * op.Integer<"columns">(),
                      .x = op.Operand<"x">(),
                      .dy = op.Operand<"dy">(),
                      .dx = op.Operand<"dx">()},
                     op.TypeOf<"x">(), kernel);
  return absl::OkStatus();
}

absl::Status HandleAdd(const PreparedInstruction& instruction, StepContext& context) {
  const OpView<Opcode::kAdd> op(instruction, context);
  host::KernelContext kernel = op.Kernel();
  host::Add({.elements = op.Integer<"count">(),
             .a = op.Operand<"a">(),
             .b = op.Operand<"b">(),
             .c = op.Operand<"c">()},
            op.TypeOf<"c">(), kernel);
  return absl::OkStatus();
}

absl::Status HandleZero(const PreparedInstruction& instruction, StepContext& context) {
  const OpView<Opcode::kZero> op(instruction, context);
  host::KernelContext kernel = op.Kernel();
  host::Zero(op.Operand<"x">(), static_cast<size_t>(op.BytesOf<"x">()), kernel);
  return absl::OkStatus();
}

absl::Status HandleCast(const PreparedInstruction& instruction, StepContext& context) {
  const OpView<Opcode::kCast> op(instruction, context);
  host::KernelContext kernel = op.Kernel();
  host::Cast({.elements = op.Integer<"count">(),
              .source = op.Operand<"a">(),
              .source_dtype = op.TypeOf<"a">(),
              .destination = op.Operand<"b">(),
              .destination_dtype = op.TypeOf<"b">()},
             kernel);
  return absl::OkStatus();
}

absl::Status HandleAccumulate(const PreparedInstruction& instruction, StepContext& context) {
  const OpView<Opcode::kAccumulate> op(instruction, context);
  host::KernelContext kernel = op.Kernel();
  host::Accumulate({.elements = op.Integer<"count">(),
                    .source = op.Operand<"a">(),
                    .source_dtype = op.TypeOf<"a">(),
                    .destination = op.Operand<"b">(),
                    .destination_dtype = op.TypeOf<"b">()},
                   kernel);
  return absl::OkStatus();
}

}  // namespace planc
