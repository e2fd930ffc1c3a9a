// Handlers of what the runtime itself produces: token batches and initial weights.
#include <cstdint>

#include "absl/status/status.h"
#include "runtime/checkpoint/init_shard.h"
#include "runtime/data/token_source.h"
#include "runtime/step/allocation_scope.h"
#include "runtime/step/handlers.h"
#include "runtime/step/op_view.h"

namespace planc {
namespace {

MicrobatchPosition PositionOf(const StepContext& context, int64_t rows) {
  const auto coordinate = [&](Axis axis) { return context.coordinates[static_cast<int>(axis)]; };
  return {.step = context.inputs->step,
          .microbatch = context.microbatch,
          .dp_index = coordinate(Axis::kDpReplicate) * context.plan->mesh[Axis::kDpShard] +
                      coordinate(Axis::kDpShard),
          .rows = rows};
}

absl::Status NoTokens() { return absl::FailedPreconditionError("no token source was given"); }

}  // namespace

absl::Status HandleLoadTokens(const PreparedInstruction& instruction, StepContext& context) {
  const OpView<Opcode::kLoadTokens> op(instruction, context);
  if (context.inputs->tokens == nullptr) return NoTokens();
  return context.inputs->tokens->LoadTokens(PositionOf(context, op.Integer<"rows">()),
                                            op.Operand<"tokens", int32_t>());
}

absl::Status HandleLoadTargets(const PreparedInstruction& instruction, StepContext& context) {
  const OpView<Opcode::kLoadTargets> op(instruction, context);
  if (context.inputs->tokens == nullptr) return NoTokens();
  return context.inputs->tokens->LoadTargets(PositionOf(context, op.Integer<"rows">()),
                                             op.Operand<"targets", int32_t>());
}

// This rank's shard of one unit of one layer. Runs before the first step, so it may allocate.
absl::Status HandleInitParameters(const PreparedInstruction& instruction, StepContext& context) {
  const ScopedAllocationScope outside(AllocationScope::kOutside);
  const OpView<Opcode::kInitParameters> op(instruction, context);
  if (context.inputs->restoring) return absl::OkStatus();
  const int unit = static_cast<int>(op.Integer<"unit">());
  const int64_t count = op.BytesOf<"master">() / SizeOf(op.TypeOf<"master">());
  InitShard(*context.plan, unit, context.layer, op.Coordinate(Axis::kTp),
            op.Coordinate(Axis::kDpShard) * count, count,
            static_cast<uint64_t>(context.plan->job.run().seed()), op.Operand<"master", float>());
  return absl::OkStatus();
}

}  // namespace planc
