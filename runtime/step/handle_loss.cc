// Handlers of the vocabulary-parallel cross-entropy. The tensor-parallel rank holds the logits of
// rows vocab * tp .. vocab * (tp + 1) - 1 of the vocabulary.
#include <algorithm>

#include "absl/status/status.h"
#include "kernels/cross_entropy.h"
#include "runtime/step/handlers.h"
#include "runtime/step/op_view.h"

namespace planc {
namespace {

template <Opcode kOpcode>
int64_t VocabBegin(const OpView<kOpcode>& op) {
  return op.template Integer<"vocab">() * op.Coordinate(Axis::kTp);
}

// Columns of this rank that are not padding.
template <Opcode kOpcode>
int64_t ValidColumns(const OpView<kOpcode>& op) {
  const int64_t columns = op.template Integer<"vocab">();
  return std::clamp<int64_t>(op.template Integer<"valid_vocab">() - VocabBegin(op), 0, columns);
}

}  // namespace

absl::Status HandleLossMax(const PreparedInstruction& instruction, StepContext& context) {
  const OpView<Opcode::kLossMax> op(instruction, context);
  host::KernelContext kernel = op.Kernel();
  host::LogitsMax({.tokens = op.Integer<"rows">(),
                   .columns = op.Integer<"vocab">(),
                   .valid_columns = ValidColumns(op),
                   .logits = op.Operand<"logits">(),
                   .maximum = op.Operand<"max", float>()},
                  op.TypeOf<"logits">(), kernel);
  return absl::OkStatus();
}

absl::Status HandleLossSumExp(const PreparedInstruction& instruction, StepContext& context) {
  const OpView<Opcode::kLossSumExp> op(instruction, context);
  host::KernelContext kernel = op.Kernel();
  host::SumExp({.tokens = op.Integer<"rows">(),
                .columns = op.Integer<"vocab">(),
                .valid_columns = ValidColumns(op),
                .vocab_begin = VocabBegin(op),
                .logits = op.Operand<"logits">(),
                .maximum = op.Operand<"max", float>(),
                .targets = op.Operand<"targets", int32_t>(),
                .pair = op.Operand<"pair", float>()},
               op.TypeOf<"logits">(), kernel);
  return absl::OkStatus();
}

absl::Status HandleLossGradient(const PreparedInstruction& instruction, StepContext& context) {
  const OpView<Opcode::kLossGradient> op(instruction, context);
  host::KernelContext kernel = op.Kernel();
  float loss = 0.0f;  // of this microbatch; the sum over microbatches and ranks is in double
  host::LossGrad({.tokens = op.Integer<"rows">(),
                  .columns = op.Integer<"vocab">(),
                  .valid_columns = ValidColumns(op),
                  .vocab_begin = VocabBegin(op),
                  .scale = static_cast<float>(op.Real<"scale">()),
                  .logits = op.Operand<"logits">(),
                  .maximum = op.Operand<"max", float>(),
                  .pair = op.Operand<"pair", float>(),
                  .targets = op.Operand<"targets", int32_t>(),
                  .dlogits = op.Operand<"logits">(),
                  .loss = &loss},
                 op.TypeOf<"logits">(), kernel);
  *op.Operand<"loss", double>() += loss;
  return absl::OkStatus();
}

absl::Status HandleLossForward(const PreparedInstruction& instruction, StepContext& context) {
  const OpView<Opcode::kLossForward> op(instruction, context);
  host::KernelContext kernel = op.Kernel();
  float loss = 0.0f;
  host::Loss({.tokens = op.Integer<"rows">(),
              .scale = static_cast<float>(op.Real<"scale">()),
              .maximum = op.Operand<"max", float>(),
              .pair = op.Operand<"pair", float>(),
              .targets = op.Operand<"targets", int32_t>(),
              .loss = &loss},
             kernel);
  *op.Operand<"loss", double>() += loss;
  return absl::OkStatus();
}

}  // namespace planc
