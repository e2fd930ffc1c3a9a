// The types that handlers take are those that the verifier allows: every opcode, operand and type.
#include "runtime/step/operand_types.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "schemas/verify_report.h"

namespace planc {
namespace {

constexpr DType kTypes[] = {
#define PLANC_DTYPE_VALUE(name, text, bytes) DType::name,
    PLANC_DTYPES(PLANC_DTYPE_VALUE)
#undef PLANC_DTYPE_VALUE
};

// A plan of one instruction whose operands have buffers of their own.
Plan PlanOf(Opcode opcode, DType dtype) {
  const OpcodeTraits& traits = TraitsOf(opcode);
  Plan plan;
  plan.mesh.size.fill(1);
  plan.pools.push_back({"pool", MemoryKind::kActivations, 64});
  plan.units.emplace_back();
  plan.blocks.push_back({"block", {0}, {}});
  Instruction& instruction = plan.blocks[0].instructions.emplace_back();
  instruction.opcode = opcode;
  for (size_t k = 0; k < traits.operands.size(); ++k) {
    Buffer& buffer = plan.buffers.emplace_back();
    buffer.name = absl::StrCat("operand", k);
    buffer.bytes = 64;
    buffer.dtype = dtype;
    instruction.operands.push_back({static_cast<int>(k), 0, 0, 0, 8});
  }
  // Flags, axes and units are the attributes that may not be larger.
  instruction.integers.assign(traits.integers.size(), 1);
  for (size_t i = 0; i < traits.integers.size(); ++i) {
    if (traits.integers[i] == "unit") instruction.integers[i] = 0;
  }
  instruction.reals.assign(traits.reals.size(), 1);
  return plan;
}

// Whether the verifier's rules of types, and no others, find nothing.
bool VerifierTakes(const Plan& plan) {
  VerifyResult result;
  verifying::Report report(&result);
  verifying::CheckBounds(plan, report);
  for (const Violation& violation : result.violations) {
    EXPECT_FALSE(absl::StrContains(violation.message, "out of range")) << violation.message;
    for (const char* text :
         {" cannot be ", "differ in type", "rounded too far", "needs an f32 sum"}) {
      if (absl::StrContains(violation.message, text)) return false;
    }
  }
  return true;
}

// Gives operands `k` and after in turn every type, and compares; `right` counts what is taken.
void TryOperands(Plan& plan, size_t k, int* tried, int* right) {
  if (k == plan.buffers.size()) {
    const bool taken = CheckOperandTypes(plan, plan.blocks[0], 0).ok();
    EXPECT_EQ(taken, VerifierTakes(plan))
        << InstructionText(plan, plan.blocks[0], plan.blocks[0].instructions[0]);
    ++*tried;
    *right += taken ? 1 : 0;
    return;
  }
  for (const DType dtype : kTypes) {
    plan.buffers[k].dtype = dtype;
    TryOperands(plan, k + 1, tried, right);
    // Of operations with many operands, two types for each of the later ones are enough.
    if (k >= 5 && dtype != kTypes[0]) break;
  }
}

TEST(OperandTypesTest, HandlersTakeWhatTheVerifierAllows) {
  for (int o = 0; o < kOpcodeCount; ++o) {
    Plan plan = PlanOf(static_cast<Opcode>(o), DType::kF32);
    int tried = 0;
    int right = 0;
    TryOperands(plan, 0, &tried, &right);
    EXPECT_GT(right, 0) << TraitsOf(static_cast<Opcode>(o)).text << " takes nothing";
    EXPECT_GT(tried, 1);
  }
}

TEST(OperandTypesTest, MessageNamesBlockInstructionAndOperand) {
  const Plan plan = PlanOf(Opcode::kSumSquares, DType::kF32);
  EXPECT_EQ(CheckOperandTypes(plan, plan.blocks[0], 0).message(),
            "block block, instruction 0 (sum_squares): operand operand1 cannot be f32");
}

}  // namespace
}  // namespace planc
