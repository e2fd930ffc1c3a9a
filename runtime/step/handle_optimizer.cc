// Handlers of the gradient norm, clipping and AdamW.
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "absl/status/status.h"
#include "kernels/optimizer.h"
#include "runtime/step/faults.h"
#include "runtime/step/handlers.h"
#include "runtime/step/op_view.h"

namespace planc {
namespace {

// Bytes of `elements` elements past `start`.
void* Advance(void* start, int64_t elements, DType dtype) {
  return static_cast<char*>(start) + elements * SizeOf(dtype);
}

// Updates elements [begin, end) of the shard with the given weight decay.
void UpdateRange(host::AdamWArgs args, int64_t begin, int64_t end, double weight_decay,
                 host::KernelContext& kernel) {
  if (begin >= end) return;
  args.elements = end - begin;
  args.weight_decay = weight_decay;
  args.gradient = Advance(const_cast<void*>(args.gradient), begin, args.gradient_dtype);
  args.master += begin;
  args.first_moment = Advance(args.first_moment, begin, args.state_dtype);
  args.second_moment = Advance(args.second_moment, begin, args.state_dtype);
  if (args.compute_copy != nullptr) {
    args.compute_copy = Advance(args.compute_copy, begin, args.compute_dtype);
  }
  host::AdamW(args, kernel);
}

// The shard is elements shard * count .. (shard + 1) * count - 1 of its unit, of which the first
// decay_count elements decay.
template <Opcode kOpcode>
absl::Status RunAdamw(const OpView<kOpcode>& op, const HyperParameters& hyper_parameters,
                      void* weight, DType weight_dtype) {
  const int64_t count = op.template Integer<"count">();
  const int64_t begin = op.Coordinate(Axis::kDpShard) * count;
  const int64_t decayed =
      std::clamp<int64_t>(op.template Integer<"decay_count">() - begin, 0, count);
  const host::AdamWArgs args{.step = hyper_parameters.update,
                             .lr = hyper_parameters.lr,
                             .beta1 = hyper_parameters.beta1,
                             .beta2 = hyper_parameters.beta2,
                             .epsilon = hyper_parameters.epsilon,
                             .gradient = op.template Operand<"g">(),
                             .gradient_dtype = op.template TypeOf<"g">(),
                             .coefficient = op.template Operand<"coefficient", float>(),
                             .master = op.template Operand<"master", float>(),
                             .first_moment = op.template Operand<"m">(),
                             .second_moment = op.template Operand<"v">(),
                             .state_dtype = op.template TypeOf<"m">(),
                             .compute_copy = weight,
                             .compute_dtype = weight_dtype};
  host::KernelContext kernel = op.Kernel();
  UpdateRange(args, 0, decayed, hyper_parameters.weight_decay, kernel);
  UpdateRange(args, decayed, count, 0.0, kernel);
  return absl::OkStatus();
}

}  // namespace

absl::Status HandleSumSquares(const PreparedInstruction& instruction, StepContext& context) {
  const OpView<Opcode::kSumSquares> op(instruction, context);
  for (const Axis axis : kAllAxes) {
    const bool once = (op.Integer<"once_axes">() & AxisBit(axis)) != 0;
    if (once && op.Coordinate(axis) != 0) return absl::OkStatus();
  }
  host::KernelContext kernel = op.Kernel();
  host::SumSquares({.elements = op.Integer<"count">(),
                    .gradient = op.Operand<"g">(),
                    .sum = op.Operand<"sum", double>()},
                   op.TypeOf<"g">(), kernel);
  return absl::OkStatus();
}

// Every rank has the same loss and the same sum, so all of them stop here together, before any
// AdamW.
absl::Status HandleClipCoefficient(const PreparedInstruction& instruction, StepContext& context) {
  const OpView<Opcode::kClipCoefficient> op(instruction, context);
  const double loss = *op.Operand<"loss", double>();
  if (!std::isfinite(loss)) return NonFiniteError("loss", loss);
  host::KernelContext kernel = op.Kernel();
  int32_t nonfinite = 0;
  host::ClipCoefficient({.sum_squares = op.Operand<"sum", double>(),
                         .clip_norm = static_cast<float>(op.Real<"clip_norm">()),
                         .norm = op.Operand<"norm", float>(),
                         .coefficient = op.Operand<"coefficient", float>(),
                         .nonfinite = &nonfinite},
                        kernel);
  if (nonfinite != 0) return NonFiniteError("gradient norm", *op.Operand<"norm", float>());
  return absl::OkStatus();
}

absl::Status HandleAdamw(const PreparedInstruction& instruction, StepContext& context) {
  const OpView<Opcode::kAdamw> op(instruction, context);
  return RunAdamw(op, context.inputs->hyper_parameters, nullptr, DType::kF32);
}

absl::Status HandleAdamwCast(const PreparedInstruction& instruction, StepContext& context) {
  const OpView<Opcode::kAdamwCast> op(instruction, context);
  return RunAdamw(op, context.inputs->hyper_parameters, op.Operand<"weight">(),
                  op.TypeOf<"weight">());
}

}  // namespace planc
