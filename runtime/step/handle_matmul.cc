// Handlers of matrix products and of the biases added to them.
#include "absl/status/status.h"
#include "kernels/elementwise.h"
#include "kernels/matmul.h"
#include "runtime/step/handlers.h"
#include "runtime/step/op_view.h"

namespace planc {
namespace {

template <Opcode kOpcode>
absl::Status RunMatmul(const OpView<kOpcode>& op, host::Matmul* matmul) {
  host::KernelContext kernel = op.KernelWithWorkspace();
  matmul->Run(op.template Operand<"a">(), op.template Operand<"b">(), op.template Operand<"c">(),
              kernel);
  return absl::OkStatus();
}

}  // namespace

absl::Status HandleMatmul(const PreparedInstruction& instruction, StepContext& context) {
  return RunMatmul(OpView<Opcode::kMatmul>(instruction, context), instruction.matmul);
}

absl::Status HandleMatmulAdd(const PreparedInstruction& instruction, StepContext& context) {
  return RunMatmul(OpView<Opcode::kMatmulAdd>(instruction, context), instruction.matmul);
}

absl::Status HandleBiasForward(const PreparedInstruction& instruction, StepContext& context) {
  const OpView<Opcode::kBiasForward> op(instruction, context);
  host::KernelContext kernel = op.Kernel();
  host::BiasForward({.tokens = op.Integer<"rows">(),
                     .columns = op.Integer<"columns">(),
                     .bias = op.Operand<"b">(),
                     .y = op.Operand<"y">()},
                    op.TypeOf<"y">(), kernel);
  return absl::OkStatus();
}

absl::Status HandleBiasBackward(const PreparedInstruction& instruction, StepContext& context) {
  const OpView<Opcode::kBiasBackward> op(instruction, context);
  host::KernelContext kernel = op.KernelWithWorkspace();
  host::BiasBackward({.tokens = op.Integer<"rows">(),
                      .columns = op.Integer<"columns">(),
                      .dy = op.Operand<"dy">(),
                      .dbias = op.Operand<"db">(),
                      .dbias_dtype = op.TypeOf<"db">()},
                     op.TypeOf<"dy">(), kernel);
  return absl::OkStatus();
}

}  // namespace planc
