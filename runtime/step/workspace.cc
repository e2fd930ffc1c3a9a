#include "runtime/step/workspace.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "kernels/attention.h"
#include "kernels/elementwise.h"
#include "kernels/norm.h"
#include "schemas/opcode.h"

namespace planc {
namespace {

int64_t Integer(const Instruction& instruction, const std::string& name) {
  return instruction.integers[IntegerIndex(instruction.opcode, name)];
}

host::AttentionShape AttentionShapeOf(const Instruction& instruction) {
  return {.batch = Integer(instruction, "batch"),
          .sequence = Integer(instruction, "sequence"),
          .query_heads = Integer(instruction, "heads"),
          .kv_heads = Integer(instruction, "kv_heads"),
          .head_dim = Integer(instruction, "head_dim")};
}

// The query and key heads are normalised one after the other in the same workspace.
int64_t HeadNormBytes(const Instruction& instruction) {
  const int64_t rows = Integer(instruction, "rows");
  const int64_t head_dim = Integer(instruction, "head_dim");
  return static_cast<int64_t>(std::max(
      host::HeadNormBackwardWorkspaceBytes(rows, Integer(instruction, "heads"), head_dim),
      host::HeadNormBackwardWorkspaceBytes(rows, Integer(instruction, "kv_heads"), head_dim)));
}

}  // namespace

host::MatmulShape MatmulShapeOf(const Plan& plan, const Instruction& instruction) {
  const auto type_of = [&](const char* name) {
    const Operand& operand = instruction.operands[OperandIndex(instruction.opcode, name)];
    return plan.buffers[operand.buffer].dtype;
  };
  return {.m = Integer(instruction, "m"),
          .n = Integer(instruction, "n"),
          .k = Integer(instruction, "k"),
          .transpose_a = Integer(instruction, "transpose_a") != 0,
          .transpose_b = Integer(instruction, "transpose_b") != 0,
          .a = type_of("a"),
          .b = type_of("b"),
          .c = type_of("c"),
          .accumulate = instruction.opcode == Opcode::kMatmulAdd};
}

int64_t NeededWorkspaceBytes(const Plan& plan, const Instruction& instruction) {
  switch (instruction.opcode) {
    case Opcode::kMatmul:
    case Opcode::kMatmulAdd:
      return host::MatmulWorkspaceBytes(MatmulShapeOf(plan, instruction));
    case Opcode::kAttentionForward:
      return host::AttentionForwardWorkspaceBytes(AttentionShapeOf(instruction), 1);
    case Opcode::kAttentionBackward:
      return host::AttentionBackwardWorkspaceBytes(AttentionShapeOf(instruction), 1);
    case Opcode::kRmsNormBackward:
    case Opcode::kRmsNormBackwardAdd:
      return static_cast<int64_t>(host::RmsNormBackwardWorkspaceBytes(
          Integer(instruction, "rows"), Integer(instruction, "hidden")));
    case Opcode::kLayerNormBackward:
    case Opcode::kLayerNormBackwardAdd:
      return static_cast<int64_t>(host::LayerNormBackwardWorkspaceBytes(
          Integer(instruction, "rows"), Integer(instruction, "hidden")));
    case Opcode::kHeadNormBackward:
      return HeadNormBytes(instruction);
    case Opcode::kBiasBackward:
      return static_cast<int64_t>(host::BiasBackwardWorkspaceBytes(
          Integer(instruction, "rows"), Integer(instruction, "columns")));
    default:
      return 0;
  }
}

}  // namespace planc
