// Handlers of token and learned position embeddings.
#include "absl/status/status.h"
#include "kernels/embedding.h"
#include "runtime/step/handlers.h"
#include "runtime/step/op_view.h"

namespace planc {

absl::Status HandleEmbeddingForward(const PreparedInstruction& instruction, StepContext& context) {
  const OpView<Opcode::kEmbeddingForward> op(instruction, context);
  host::KernelContext kernel = op.Kernel();
  host::EmbeddingForward({.tokens = op.Integer<"rows">(),
                          .hidden = op.Integer<"hidden">(),
                          .vocab_rows = op.Integer<"vocab">(),
                          .vocab_begin = op.Integer<"vocab">() * op.Coordinate(Axis::kTp),
                          .token_ids = op.Operand<"tokens", int32_t>(),
                          .table = op.Operand<"table">(),
                          .x = op.Operand<"x">()},
                         op.TypeOf<"x">(), kernel);
  return absl::OkStatus();
}

absl::Status HandleEmbeddingBackward(const PreparedInstruction& instruction, StepContext& context) {
  const OpView<Opcode::kEmbeddingBackward> op(instruction, context);
  host::KernelContext kernel = op.Kernel();
  host::EmbeddingBackward({.tokens = op.Integer<"rows">(),
                           .hidden = op.Integer<"hidden">(),
                           .vocab_rows = op.Integer<"vocab">(),
                           .vocab_begin = op.Integer<"vocab">() * op.Coordinate(Axis::kTp),
                           .token_ids = op.Operand<"tokens", int32_t>(),
                           .dx = op.Operand<"dx">(),
                           .dtable = op.Operand<"dtable">(),
                           .dtable_dtype = op.TypeOf<"dtable">()},
                          op.TypeOf<"dx">(), kernel);
  return absl::OkStatus();
}

absl::Status HandlePositionForward(const PreparedInstruction& instruction, StepContext& context) {
  const OpView<Opcode::kPositionForward> op(instruction, context);
  host::KernelContext kernel = op.Kernel();
  host::PositionForward({.tokens = op.Integer<"rows">(),
                         .hidden = op.Integer<"hidden">(),
                         .sequence = op.Integer<"sequence">(),
                         .first_row = op.Integer<"row_stride">() * op.Coordinate(Axis::kTp),
                         .table = op.Operand<"table">(),
                         .x = op.Operand<"x">()},
                        op.TypeOf<"x">(), kernel);
  return absl::OkStatus();
}

absl::Status HandlePositionBackward(const PreparedInstruction& instruction, StepContext& context) {
  const OpView<Opcode::kPositionBackward> op(instruction, context);
  host::KernelContext kernel = op.Kernel();
  host::PositionBackward({.tokens = op.Integer<"rows">(),
                          .hidden = op.Integer<"hidden">(),
                          .sequence = op.Integer<"sequence">(),
                          .first_row = op.Integer<"row_stride">() * op.Coordinate(Axis::kTp),
                          .dx = op.Operand<"dx">(),
                          .dtable = op.Operand<"dtable">(),
                          .dtable_dtype = op.TypeOf<"dtable">()},
                         op.TypeOf<"dx">(), kernel);
  return absl::OkStatus();
}

}  // namespace planc
