#include "compiler/cost/instruction_cost.h"

#include <algorithm>
#include <cstddef>

namespace planc {
namespace {

double Flops(const Instruction& i) {
  const auto n = [&](int index) { return static_cast<double>(i.integers[index]); };
  switch (i.opcode) {
    case Opcode::kMatmul:
    case Opcode::kMatmulAdd:
      return 2 * n(0) * n(1) * n(2);
    case Opcode::kAttentionForward:
      // Q K^T and P V over the causal half: 2 * 2 * B * A * S^2 / 2 * D.
      return 2 * n(0) * n(2) * n(1) * n(1) * n(4);
    case Opcode::kAttentionBackward:
      // Five products of the same size (Dao et al., arXiv 2205.14135).
      return 5 * n(0) * n(2) * n(1) * n(1) * n(4);
    case Opcode::kRmsNormForward:
    case Opcode::kLayerNormForward:
      return 5 * n(0) * n(1);
    case Opcode::kRmsNormBackward:
    case Opcode::kRmsNormBackwardAdd:
    case Opcode::kLayerNormBackward:
    case Opcode::kLayerNormBackwardAdd:
      return 10 * n(0) * n(1);
    case Opcode::kHeadNormForward:
      return 5 * n(0) * (n(1) + n(2)) * n(3);
    case Opcode::kHeadNormBackward:
      return 10 * n(0) * (n(1) + n(2)) * n(3);
    case Opcode::kRopeForward:
    case Opcode::kRopeBackward:
      return 3 * n(0) * (n(2) + n(3)) * n(4);
    case Opcode::kSwigluForward:
    case Opcode::kGeluForward:
      return 8 * n(0) * n(1);
    case Opcode::kSwigluBackward:
    case Opcode::kGeluBackward:
      return 16 * n(0) * n(1);
    case Opcode::kLossSumExp:
    case Opcode::kLossGradient:
      return 4 * n(0) * n(1);
    case Opcode::kLossMax:
    case Opcode::kBiasForward:
    case Opcode::kBiasBackward:
    case Opcode::kEmbeddingBackward:
    case Opcode::kPositionForward:
    case Opcode::kPositionBackward:
      return n(0) * n(1);
    case Opcode::kAdd:
    case Opcode::kAccumulate:
      return n(0);
    case Opcode::kSumSquares:
      return 2 * n(0);
    case Opcode::kAdamw:
    case Opcode::kAdamwCast:
      return 15 * n(0);
    default:
      return 0;
  }
}

// Bytes of operand `o` that the instruction reads or writes: all of them, with these exceptions.
int64_t BytesTouched(const Instruction& i, size_t o, const std::vector<DType>& dtypes) {
  const int64_t bytes = i.operands[o].bytes;
  const auto rows_of_table = [&] {
    return std::min(bytes, i.integers[0] * i.integers[1] * SizeOf(dtypes[o]));
  };
  // Of the heads [A + 2K], the value heads stay as they are.
  const auto query_and_key_heads = [&] {
    const int64_t heads = i.integers[i.integers.size() - 3];
    const int64_t kv_heads = i.integers[i.integers.size() - 2];
    return bytes / (heads + 2 * kv_heads) * (heads + kv_heads);
  };
  switch (i.opcode) {
    case Opcode::kEmbeddingForward:
      return o == 1 ? rows_of_table() : bytes;
    case Opcode::kEmbeddingBackward:
      return o == 2 ? rows_of_table() : bytes;
    case Opcode::kRopeForward:
    case Opcode::kRopeBackward:
      return o == 0 ? query_and_key_heads() : bytes;
    case Opcode::kHeadNormBackward:
      return o <= 1 ? query_and_key_heads() : bytes;
    default:
      return bytes;
  }
}

int64_t BytesSent(const Instruction& i, int64_t element, int64_t members) {
  switch (i.opcode) {
    case Opcode::kAllReduce:
      return 2 * (members - 1) * i.integers[0] * element / members;
    case Opcode::kReduceScatter:
    case Opcode::kAllGather:
      return (members - 1) * i.integers[0] * element;
    case Opcode::kSend:
      return i.integers[0] * element;
    default:
      return 0;
  }
}

}  // namespace

Cost InstructionCost(const Instruction& instruction, const std::vector<DType>& operand_dtypes,
                     int64_t group_size) {
  Cost cost;
  cost.flops = Flops(instruction);
  const auto& operands = TraitsOf(instruction.opcode).operands;
  for (size_t o = 0; o < operands.size(); ++o) {
    if (operands[o].IsScratch()) continue;
    const int64_t bytes = BytesTouched(instruction, o, operand_dtypes);
    if (operands[o].access != Access::kWrite) cost.bytes_read += bytes;
    if (operands[o].access != Access::kRead) cost.bytes_written += bytes;
  }
  cost.bytes_sent = BytesSent(instruction, SizeOf(operand_dtypes[0]), group_size);
  return cost;
}

}  // namespace planc
