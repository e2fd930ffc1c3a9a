// Handlers of attention and of the rotary embedding of its queries and keys.
#include "absl/status/status.h"
#include "kernels/attention.h"
#include "kernels/rope.h"
#include "runtime/step/handlers.h"
#include "runtime/step/op_view.h"

namespace planc {
namespace {

template <Opcode kOpcode>
host::AttentionShape ShapeOf(const OpView<kOpcode>& op) {
  return {.batch = op.template Integer<"batch">(),
          .sequence = op.template Integer<"sequence">(),
          .query_heads = op.template Integer<"heads">(),
          .kv_heads = op.template Integer<"kv_heads">(),
          .head_dim = op.template Integer<"head_dim">()};
}

// Rotates the query and key heads of qkv, which lie side by side, in place.
template <Opcode kOpcode>
absl::Status Rotate(const OpView<kOpcode>& op, void* qkv, DType dtype, int direction) {
  const int64_t heads = op.template Integer<"heads">();
  const int64_t kv_heads = op.template Integer<"kv_heads">();
  const int64_t head_dim = op.template Integer<"head_dim">();
  const int64_t sequence = op.template Integer<"sequence">();
  const int64_t stride = (heads + 2 * kv_heads) * head_dim;
  const float* cosine = op.template Operand<"table", float>();
  host::KernelContext kernel = op.Kernel();
  host::Rope({.tokens = op.template Integer<"rows">(),
              .heads = heads + kv_heads,
              .head_dim = head_dim,
              .sequence = sequence,
              .direction = direction,
              .x = qkv,
              .x_stride = stride,
              .y = qkv,
              .y_stride = stride,
              .cosine = cosine,
              .sine = cosine + sequence * head_dim / 2},
             dtype, kernel);
  return absl::OkStatus();
}

}  // namespace

absl::Status HandleRopeForward(const PreparedInstruction& instruction, StepContext& context) {
  const OpView<Opcode::kRopeForward> op(instruction, context);
  return Rotate(op, op.Operand<"qkv">(), op.TypeOf<"qkv">(), +1);
}

absl::Status HandleRopeBackward(const PreparedInstruction& instruction, StepContext& context) {
  const OpView<Opcode::kRopeBackward> op(instruction, context);
  return Rotate(op, op.Operand<"dqkv">(), op.TypeOf<"dqkv">(), -1);
}

// The table is [2, sequence, head_dim / 2]: all cosines, then all sines.
absl::Status HandleRopeTable(const PreparedInstruction& instruction, StepContext& context) {
  const OpView<Opcode::kRopeTable> op(instruction, context);
  const int64_t sequence = op.Integer<"sequence">();
  const int64_t head_dim = op.Integer<"head_dim">();
  float* const cosine = op.Operand<"table", float>();
  host::FillRopeTable(/*first_position=*/0, sequence, head_dim, op.Real<"theta">(),
                      host::RopeScaling(), cosine, cosine + sequence * head_dim / 2);
  return absl::OkStatus();
}

absl::Status HandleAttentionForward(const PreparedInstruction& instruction, StepContext& context) {
  const OpView<Opcode::kAttentionForward> op(instruction, context);
  host::KernelContext kernel = op.KernelWithWorkspace();
  host::AttentionForward({.shape = ShapeOf(op),
                          .qkv = op.Operand<"qkv">(),
                          .o = op.Operand<"o">(),
                          .lse = op.Operand<"lse", float>()},
                         op.TypeOf<"qkv">(), kernel);
  return absl::OkStatus();
}

absl::Status HandleAttentionBackward(const PreparedInstruction& instruction, StepContext& context) {
  const OpView<Opcode::kAttentionBackward> op(instruction, context);
  host::KernelContext kernel = op.KernelWithWorkspace();
  host::AttentionBackward({.shape = ShapeOf(op),
                           .qkv = op.Operand<"qkv">(),
                           .o = op.Operand<"o">(),
                           .lse = op.Operand<"lse", float>(),
                           .d_o = op.Operand<"do">(),
                           .dqkv = op.Operand<"dqkv">()},
                          op.TypeOf<"qkv">(), kernel);
  return absl::OkStatus();
}

}  // namespace planc
