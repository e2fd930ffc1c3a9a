// Every operand of every opcode needs the bytes that the handler accesses, inside its slot.
#include "runtime/step/operand_bytes.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "schemas/verify_shapes.h"

namespace planc {
namespace {

using verifying::ElementRule;

DType TypeOf(ElementRule rule) {
  switch (rule) {
    case ElementRule::kScalarSum:
      return DType::kF64;
    case ElementRule::kIndex:
      return DType::kI32;
    case ElementRule::kScratch:
      return DType::kU8;
    default:
      return DType::kF32;
  }
}

// A plan of one instruction on two members of a group, each operand a buffer and a pool of its own
// with no more bytes than it needs.
Plan PlanOf(Opcode opcode) {
  const OpcodeTraits& traits = TraitsOf(opcode);
  Plan plan;
  plan.mesh.size.fill(1);
  plan.mesh.size[static_cast<int>(Axis::kDpShard)] = 2;
  plan.groups.push_back({"dp_shard", AxisBit(Axis::kDpShard), false});
  plan.units.emplace_back().elements = 12;
  plan.blocks.push_back({"block", {}, {}});
  Instruction& instruction = plan.blocks[0].instructions.emplace_back();
  instruction.opcode = opcode;
  if (traits.kind == OpcodeKind::kCollective) instruction.group = 0;
  instruction.integers.assign(traits.integers.size(), 6);
  if (IntegerIndex(opcode, "unit") >= 0) instruction.integers[IntegerIndex(opcode, "unit")] = 0;
  instruction.reals.assign(traits.reals.size(), 1);
  const auto shapes = verifying::ShapesOf(opcode, instruction.integers.data(), 2, 4);
  for (size_t k = 0; k < traits.operands.size(); ++k) {
    Buffer& buffer = plan.buffers.emplace_back();
    buffer.name = absl::StrCat("operand", k);
    buffer.pool = static_cast<int>(k);
    buffer.dtype = TypeOf(shapes[k].rule);
    buffer.bytes = shapes[k].rule == ElementRule::kScratch
                       ? shapes[k].rows
                       : shapes[k].rows * shapes[k].columns * SizeOf(buffer.dtype);
    if (opcode == Opcode::kInitParameters) buffer.bytes = 12 / 2 * 4;
    if (opcode == Opcode::kZero) buffer.bytes = 24;
    plan.pools.push_back({buffer.name, MemoryKind::kActivations, buffer.bytes});
    instruction.operands.push_back({static_cast<int>(k), 0, 0, 0, buffer.bytes});
  }
  return plan;
}

std::string Finding(const Plan& plan, int64_t dp_shard = 0) {
  return std::string(CheckOperandBytes(plan, plan.blocks[0], 0, dp_shard).message());
}

TEST(OperandBytesTest, EveryOperandNeedsItsBytesInItsSlot) {
  for (int o = 0; o < kOpcodeCount; ++o) {
    const auto opcode = static_cast<Opcode>(o);
    const Plan right = PlanOf(opcode);
    EXPECT_EQ(Finding(right), "") << TraitsOf(opcode).text;
    for (size_t k = 0; k < right.buffers.size(); ++k) {
      SCOPED_TRACE(absl::StrCat(TraitsOf(opcode).text, ", operand ", k));
      Plan fewer = right;
      --fewer.blocks[0].instructions[0].operands[k].bytes;
      if (opcode != Opcode::kZero) {  // clears what it is given
        EXPECT_TRUE(absl::StrContains(Finding(fewer), "fewer than the operation takes"));
      }
      Plan shorter = right;
      --shorter.pools[k].stride;
      EXPECT_TRUE(absl::StrContains(Finding(shorter), "does not lie in its slot"));
      Plan before = right;
      before.blocks[0].instructions[0].operands[k].offset = -4;
      EXPECT_TRUE(absl::StrContains(Finding(before), "does not lie in its slot"));
      Plan moved = right;
      moved.blocks[0].instructions[0].operands[k].shard_stride = 4;
      EXPECT_EQ(Finding(moved, 0), "");
      EXPECT_TRUE(absl::StrContains(Finding(moved, 1), "does not lie in its slot"));
    }
  }
}

TEST(OperandBytesTest, AttributesThatAreNoSizesAreRefused) {
  for (const int64_t value : {int64_t{-1}, int64_t{1} << 50, INT64_MAX}) {
    Plan plan = PlanOf(Opcode::kMatmul);
    plan.blocks[0].instructions[0].integers[1] = value;
    EXPECT_EQ(Finding(plan), absl::StrCat("block block, instruction 0 (matmul): n is ", value));
  }
  Plan plan = PlanOf(Opcode::kInitParameters);
  plan.blocks[0].instructions[0].integers[0] = 1;
  EXPECT_EQ(Finding(plan), "block block, instruction 0 (init_parameters): unit is 1");
}

}  // namespace
}  // namespace planc
