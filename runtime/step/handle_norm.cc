// Handlers of RMSNorm, LayerNorm and the norm of query and key heads.
#include <cstddef>
#include <cstring>

#include "absl/status/status.h"
#include "kernels/norm.h"
#include "runtime/step/handlers.h"
#include "runtime/step/op_view.h"

namespace planc {
namespace {

template <Opcode kOpcode>
absl::Status RmsNormBackward(const OpView<kOpcode>& op, bool accumulate_dx) {
  host::KernelContext kernel = op.KernelWithWorkspace();
  host::RmsNormBackward({.tokens = op.template Integer<"rows">(),
                         .hidden = op.template Integer<"hidden">(),
                         .dy = op.template Operand<"dy">(),
                         .x = op.template Operand<"x">(),
                         .weight = op.template Operand<"w">(),
                         .rstd = op.template Operand<"rstd", float>(),
                         .dx = op.template Operand<"dx">(),
                         .accumulate_dx = accumulate_dx,
                         .dweight = op.template Operand<"dw">(),
                         .dweight_dtype = op.template TypeOf<"dw">()},
                        op.template TypeOf<"x">(), kernel);
  return absl::OkStatus();
}

template <Opcode kOpcode>
absl::Status LayerNormBackward(const OpView<kOpcode>& op, bool accumulate_dx) {
  host::KernelContext kernel = op.KernelWithWorkspace();
  host::LayerNormBackward({.tokens = op.template Integer<"rows">(),
                           .hidden = op.template Integer<"hidden">(),
                           .dy = op.template Operand<"dy">(),
                           .x = op.template Operand<"x">(),
                           .weight = op.template Operand<"w">(),
                           .mean = op.template Operand<"mean", float>(),
                           .rstd = op.template Operand<"rstd", float>(),
                           .dx = op.template Operand<"dx">(),
                           .accumulate_dx = accumulate_dx,
                           .dweight = op.template Operand<"dw">(),
                           .dbias = op.template Operand<"db">(),
                           .dweight_dtype = op.template TypeOf<"dw">()},
                          op.template TypeOf<"x">(), kernel);
  return absl::OkStatus();
}

// Where the heads of one row of qkv lie, in elements, and where their rstd do: that of the query
// heads [rows, heads] comes first, then that of the key heads [rows, kv_heads].
struct HeadSlices {
  int64_t stride = 0;      // of a row
  int64_t key_column = 0;  // first element of the key heads
  int64_t value_column = 0;
  int64_t key_rstd = 0;  // first rstd of the key heads
};

template <Opcode kOpcode>
HeadSlices SlicesOf(const OpView<kOpcode>& op) {
  const int64_t heads = op.template Integer<"heads">();
  const int64_t kv_heads = op.template Integer<"kv_heads">();
  const int64_t head_dim = op.template Integer<"head_dim">();
  return {.stride = (heads + 2 * kv_heads) * head_dim,
          .key_column = heads * head_dim,
          .value_column = (heads + kv_heads) * head_dim,
          .key_rstd = op.template Integer<"rows">() * heads};
}

}  // namespace

absl::Status HandleRmsNormForward(const PreparedInstruction& instruction, StepContext& context) {
  const OpView<Opcode::kRmsNormForward> op(instruction, context);
  host::KernelContext kernel = op.Kernel();
  host::RmsNormForward({.tokens = op.Integer<"rows">(),
                        .hidden = op.Integer<"hidden">(),
                        .epsilon = static_cast<float>(op.Real<"epsilon">()),
                        .x = op.Operand<"x">(),
                        .weight = op.Operand<"w">(),
                        .y = op.Operand<"y">(),
                        .rstd = op.Operand<"rstd", float>()},
                       op.TypeOf<"x">(), kernel);
  return absl::OkStatus();
}

absl::Status HandleRmsNormBackward(const PreparedInstruction& instruction, StepContext& context) {
  return RmsNormBackward(OpView<Opcode::kRmsNormBackward>(instruction, context), false);
}

absl::Status HandleRmsNormBackwardAdd(const PreparedInstruction& instruction,
                                      StepContext& context) {
  return RmsNormBackward(OpView<Opcode::kRmsNormBackwardAdd>(instruction, context), true);
}

absl::Status HandleLayerNormForward(const PreparedInstruction& instruction, StepContext& context) {
  const OpView<Opcode::kLayerNormForward> op(instruction, context);
  host::KernelContext kernel = op.Kernel();
  host::LayerNormForward({.tokens = op.Integer<"rows">(),
                          .hidden = op.Integer<"hidden">(),
                          .epsilon = static_cast<float>(op.Real<"epsilon">()),
                          .x = op.Operand<"x">(),
                          .weight = op.Operand<"w">(),
                          .bias = op.Operand<"b">(),
                          .y = op.Operand<"y">(),
                          .mean = op.Operand<"mean", float>(),
                          .rstd = op.Operand<"rstd", float>()},
                         op.TypeOf<"x">(), kernel);
  return absl::OkStatus();
}

absl::Status HandleLayerNormBackward(const PreparedInstruction& instruction, StepContext& context) {
  return LayerNormBackward(OpView<Opcode::kLayerNormBackward>(instruction, context), false);
}

absl::Status HandleLayerNormBackwardAdd(const PreparedInstruction& instruction,
                                        StepContext& context) {
  return LayerNormBackward(OpView<Opcode::kLayerNormBackwardAdd>(instruction, context), true);
}

absl::Status HandleHeadNormForward(const PreparedInstruction& instruction, StepContext& context) {
  const OpView<Opcode::kHeadNormForward> op(instruction, context);
  const HeadSlices slices = SlicesOf(op);
  host::KernelContext kernel = op.Kernel();
  host::HeadNormForwardArgs args{.tokens = op.Integer<"rows">(),
                                 .heads = op.Integer<"heads">(),
                                 .head_dim = op.Integer<"head_dim">(),
                                 .epsilon = static_cast<float>(op.Real<"epsilon">()),
                                 .x = op.Operand<"qkv">(),
                                 .x_stride = slices.stride,
                                 .weight = op.Operand<"wq">(),
                                 .y = op.Operand<"out">(),
                                 .y_stride = slices.stride,
                                 .rstd = op.Operand<"rstd", float>()};
  host::HeadNormForward(args, op.TypeOf<"qkv">(), kernel);
  args.heads = op.Integer<"kv_heads">();
  args.weight = op.Operand<"wk">();
  args.x_column = args.y_column = slices.key_column;
  args.rstd += slices.key_rstd;
  host::HeadNormForward(args, op.TypeOf<"qkv">(), kernel);

  // The value heads pass unchanged.
  const int64_t element = SizeOf(op.TypeOf<"qkv">());
  const size_t bytes = static_cast<size_t>((slices.stride - slices.value_column) * element);
  for (int64_t row = 0; row < op.Integer<"rows">(); ++row) {
    const int64_t begin = (row * slices.stride + slices.value_column) * element;
    std::memcpy(op.Operand<"out", char>() + begin, op.Operand<"qkv", char>() + begin, bytes);
  }
  return absl::OkStatus();
}

absl::Status HandleHeadNormBackward(const PreparedInstruction& instruction, StepContext& context) {
  const OpView<Opcode::kHeadNormBackward> op(instruction, context);
  const HeadSlices slices = SlicesOf(op);
  host::KernelContext kernel = op.KernelWithWorkspace();
  host::HeadNormBackwardArgs args{.tokens = op.Integer<"rows">(),
                                  .heads = op.Integer<"heads">(),
                                  .head_dim = op.Integer<"head_dim">(),
                                  .dy = op.Operand<"dqkv">(),
                                  .dy_stride = slices.stride,
                                  .x = op.Operand<"qkv">(),
                                  .x_stride = slices.stride,
                                  .weight = op.Operand<"wq">(),
                                  .rstd = op.Operand<"rstd", float>(),
                                  .dx = op.Operand<"dqkv">(),
                                  .dx_stride = slices.stride,
                                  .dweight = op.Operand<"dwq">(),
                                  .dweight_dtype = op.TypeOf<"dwq">()};
  host::HeadNormBackward(args, op.TypeOf<"qkv">(), kernel);
  args.heads = op.Integer<"kv_heads">();
  args.dy_column = args.x_column = args.dx_column = slices.key_column;
  args.weight = op.Operand<"wk">();
  args.rstd += slices.key_rstd;
  args.dweight = op.Operand<"dwk">();
  host::HeadNormBackward(args, op.TypeOf<"qkv">(), kernel);
  return absl::OkStatus();
}

}  // namespace planc
