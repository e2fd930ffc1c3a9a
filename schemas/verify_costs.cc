// What the plan says its instructions cost, computed a second time: predictions, profiles and
// deadlines for stalls go by it.
#include "schemas/verify_costs.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "schemas/verify_report.h"

namespace planc::verifying {
namespace {

// Operations on one number, by the convention that a multiply-add is two and a division or an
// exponential a few: of rows times columns for each result.
struct Work {
  double each = 0;   // operations
  double count = 0;  // times
};

Work WorkOf(const Instruction& instruction) {
  const auto at = [&](int k) { return static_cast<double>(instruction.integers[k]); };
  switch (instruction.opcode) {
    case Opcode::kMatmul:
    case Opcode::kMatmulAdd:
      return {2, at(0) * at(1) * at(2)};
    case Opcode::kAttentionForward:  // two products over the causal half of batch x heads x S x S x
                                     // D
      return {2, at(0) * at(2) * at(1) * at(1) * at(4)};
    case Opcode::kAttentionBackward:  // five
      return {5, at(0) * at(2) * at(1) * at(1) * at(4)};
    case Opcode::kRmsNormForward:
    case Opcode::kLayerNormForward:
      return {5, at(0) * at(1)};
    case Opcode::kRmsNormBackward:
    case Opcode::kRmsNormBackwardAdd:
    case Opcode::kLayerNormBackward:
    case Opcode::kLayerNormBackwardAdd:
      return {10, at(0) * at(1)};
    case Opcode::kHeadNormForward:
      return {5, at(0) * (at(1) + at(2)) * at(3)};
    case Opcode::kHeadNormBackward:
      return {10, at(0) * (at(1) + at(2)) * at(3)};
    case Opcode::kRopeForward:
    case Opcode::kRopeBackward:
      return {3, at(0) * (at(2) + at(3)) * at(4)};
    case Opcode::kSwigluForward:
    case Opcode::kGeluForward:
      return {8, at(0) * at(1)};
    case Opcode::kSwigluBackward:
    case Opcode::kGeluBackward:
      return {16, at(0) * at(1)};
    case Opcode::kLossSumExp:
    case Opcode::kLossGradient:
      return {4, at(0) * at(1)};
    case Opcode::kLossMax:
    case Opcode::kBiasForward:
    case Opcode::kBiasBackward:
    case Opcode::kEmbeddingBackward:
    case Opcode::kPositionForward:
    case Opcode::kPositionBackward:
      return {1, at(0) * at(1)};
    case Opcode::kAdd:
    case Opcode::kAccumulate:
      return {1, at(0)};
    case Opcode::kSumSquares:
      return {2, at(0)};
    case Opcode::kAdamw:
    case Opcode::kAdamwCast:
      return {15, at(0)};
    case Opcode::kEmbeddingForward:  // copies
    case Opcode::kLossForward:       // a few numbers for each row
    case Opcode::kZero:
    case Opcode::kCast:
    case Opcode::kClipCoefficient:
    case Opcode::kAllReduce:
    case Opcode::kReduceScatter:
    case Opcode::kAllGather:
    case Opcode::kSend:
    case Opcode::kRecv:
    case Opcode::kLoadTokens:
    case Opcode::kLoadTargets:
    case Opcode::kInitParameters:
    case Opcode::kRopeTable:
      return {};
  }
  return {};
}

// Bytes by which a rank's links carry its part of the collective, by the bandwidth-optimal ring:
// (n - 1) of n chunks, twice for an all-reduce.
int64_t BytesSent(const Instruction& instruction, int64_t element, int64_t members) {
  if (instruction.group < 0) return 0;
  const int64_t bytes = Times(instruction.integers[0], element);
  switch (TraitsOf(instruction.opcode).kind) {
    case OpcodeKind::kCollective:
      if (instruction.opcode == Opcode::kAllReduce) {
        return Times(2, Times(members - 1, bytes)) / members;
      }
      return Times(members - 1, bytes);
    case OpcodeKind::kTransfer:
      return instruction.opcode == Opcode::kSend ? bytes : 0;
    case OpcodeKind::kCompute:
    case OpcodeKind::kHost:
      return 0;
  }
  return 0;
}

// Of an operand's bytes, those that the operation touches: a lookup takes one row for each token,
// and value heads pass by rotation and norms of heads.
int64_t BytesTouched(const Plan& plan, const Instruction& instruction, int k) {
  const Operand& operand = instruction.operands[k];
  const std::vector<int64_t>& i = instruction.integers;
  const bool table = (instruction.opcode == Opcode::kEmbeddingForward && k == 1) ||
                     (instruction.opcode == Opcode::kEmbeddingBackward && k == 2);
  if (table) {
    const int64_t element = SizeOf(plan.buffers[operand.buffer].dtype);
    return std::min(operand.bytes, Times(Times(i[0], i[1]), element));
  }
  const bool rope =
      instruction.opcode == Opcode::kRopeForward || instruction.opcode == Opcode::kRopeBackward;
  const bool head_norm = instruction.opcode == Opcode::kHeadNormBackward;
  if ((rope && k == 0) || (head_norm && k <= 1)) {
    const int64_t heads = i[rope ? 2 : 1], kv_heads = i[rope ? 3 : 2];
    return operand.bytes / (heads + 2 * kv_heads) * (heads + kv_heads);
  }
  return operand.bytes;
}

}  // namespace

Cost CostOf(const Plan& plan, const Instruction& instruction) {
  const std::vector<OperandTraits>& operands = TraitsOf(instruction.opcode).operands;
  Cost cost;
  const Work work = WorkOf(instruction);
  cost.flops = work.each * work.count;
  for (size_t k = 0; k < operands.size(); ++k) {
    if (operands[k].IsScratch()) continue;
    const int64_t bytes = BytesTouched(plan, instruction, static_cast<int>(k));
    if (operands[k].access != Access::kWrite) cost.bytes_read = Plus(cost.bytes_read, bytes);
    if (operands[k].access != Access::kRead) cost.bytes_written = Plus(cost.bytes_written, bytes);
  }
  const int64_t element = SizeOf(plan.buffers[instruction.operands[0].buffer].dtype);
  const int64_t members =
      instruction.group < 0 ? 1 : GroupSize(plan.mesh, plan.groups[instruction.group]);
  cost.bytes_sent = BytesSent(instruction, element, members);
  return cost;
}

void CheckCosts(const Plan& plan, Report& report) {
  for (size_t b = 0; b < plan.blocks.size(); ++b) {
    const std::vector<Instruction>& instructions = plan.blocks[b].instructions;
    for (size_t i = 0; i < instructions.size() && !report.full(); ++i) {
      const Cost& said = instructions[i].cost;
      const Cost cost = CostOf(plan, instructions[i]);
      if (said.flops == cost.flops && said.bytes_read == cost.bytes_read &&
          said.bytes_written == cost.bytes_written && said.bytes_sent == cost.bytes_sent) {
        continue;
      }
      report.Add(
          "cost",
          absl::StrCat(Where(plan, static_cast<int>(b), static_cast<int>(i)), " says ", said.flops,
                       " FLOPs, ", said.bytes_read, ", ", said.bytes_written, " and ",
                       said.bytes_sent, " bytes read, written and sent; it takes ", cost.flops,
                       ", ", cost.bytes_read, ", ", cost.bytes_written, ", ", cost.bytes_sent));
    }
  }
}

}  // namespace planc::verifying
