#include "compiler/cost/instruction_cost.h"

#include <gtest/gtest.h>

namespace planc {
namespace {

constexpr DType kI32 = DType::kI32;
constexpr DType kF32 = DType::kF32;
constexpr DType kBF16 = DType::kBF16;

Instruction Make(Opcode opcode, const std::vector<int64_t>& operand_bytes,
                 const std::vector<int64_t>& integers) {
  Instruction instruction;
  instruction.opcode = opcode;
  for (const int64_t bytes : operand_bytes) {
    instruction.operands.push_back({.bytes = bytes});
  }
  instruction.integers = integers;
  return instruction;
}

TEST(InstructionCost, OfAProduct) {
  // c[4, 8] += a[4, 16] b[16, 8]
  const Cost cost =
      InstructionCost(Make(Opcode::kMatmulAdd, {256, 512, 128, 9999}, {4, 8, 16, 0, 0}),
                      {kF32, kF32, kF32, DType::kU8}, 1);
  EXPECT_EQ(cost.flops, 2 * 4 * 8 * 16);
  EXPECT_EQ(cost.bytes_read, 256 + 512 + 128) << "without the workspace";
  EXPECT_EQ(cost.bytes_written, 128);
  EXPECT_EQ(cost.bytes_sent, 0);
}

TEST(InstructionCost, EmbeddingTouchesTheRowsOfItsTokens) {
  // 3 tokens of hidden 8 from a table of 100 rows.
  const Cost forward = InstructionCost(Make(Opcode::kEmbeddingForward, {12, 1600, 96}, {3, 8, 100}),
                                       {kI32, kBF16, kF32}, 1);
  EXPECT_EQ(forward.bytes_read, 12 + 3 * 8 * 2);
  EXPECT_EQ(forward.bytes_written, 96);
  const Cost backward = InstructionCost(
      Make(Opcode::kEmbeddingBackward, {12, 96, 3200}, {3, 8, 100}), {kI32, kF32, kF32}, 1);
  EXPECT_EQ(backward.bytes_read, 12 + 96 + 96);
  EXPECT_EQ(backward.bytes_written, 96);
  // More tokens than rows: the whole table.
  const Cost all = InstructionCost(
      Make(Opcode::kEmbeddingForward, {1200, 3200, 9600}, {300, 8, 100}), {kI32, kF32, kF32}, 1);
  EXPECT_EQ(all.bytes_read, 1200 + 3200);
}

TEST(InstructionCost, ValueHeadsStayAsTheyAre) {
  // 4 query heads, 2 key and 2 value heads of 8, in 10 rows of fp32.
  const int64_t qkv = 10 * 8 * 8 * 4;
  const Cost rope =
      InstructionCost(Make(Opcode::kRopeForward, {qkv, 320}, {10, 10, 4, 2, 8}), {kF32, kF32}, 1);
  EXPECT_EQ(rope.bytes_read, qkv * 6 / 8 + 320);
  EXPECT_EQ(rope.bytes_written, qkv * 6 / 8);
  const Cost norm = InstructionCost(
      Make(Opcode::kHeadNormBackward, {qkv, qkv, 32, 32, 240, 32, 32, 9999}, {10, 4, 2, 8}),
      {kF32, kF32, kF32, kF32, kF32, kF32, kF32, DType::kU8}, 1);
  EXPECT_EQ(norm.bytes_read, 2 * qkv * 6 / 8 + 4 * 32 + 240);
  EXPECT_EQ(norm.bytes_written, qkv * 6 / 8 + 2 * 32);
}

TEST(InstructionCost, BytesSentAreThoseOfTheBestAlgorithms) {
  EXPECT_EQ(
      InstructionCost(Make(Opcode::kAllReduce, {400, 400}, {100, 0}), {kF32, kF32}, 4).bytes_sent,
      2 * 3 * 400 / 4);
  EXPECT_EQ(
      InstructionCost(Make(Opcode::kAllGather, {200, 800}, {100}), {kBF16, kBF16}, 4).bytes_sent,
      3 * 200);
  EXPECT_EQ(InstructionCost(Make(Opcode::kSend, {400}, {100, 1}), {kF32}, 2).bytes_sent, 400);
}

}  // namespace
}  // namespace planc
