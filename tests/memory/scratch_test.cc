// Plans of all meshes give every instruction the scratch that it touches, and a plan that gives
// less is refused, for every opcode that takes scratch. kernels/scratch and the conformance test of
// process groups run them with it.
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <string>

#include "schemas/collective.h"
#include "schemas/plan.h"
#include "schemas/verify.h"
#include "schemas/verify_scratch.h"
#include "tests/mesh_cases.h"

namespace planc {
namespace {

// Index of the scratch operand, -1 for opcodes without one.
int ScratchOperand(Opcode opcode) {
  const OpcodeTraits& traits = TraitsOf(opcode);
  for (size_t k = 0; k < traits.operands.size(); ++k) {
    if (traits.operands[k].IsScratch()) return static_cast<int>(k);
  }
  return -1;
}

int64_t LeastScratch(const Plan& plan, const Instruction& instruction) {
  const int64_t members =
      instruction.group < 0 ? 1 : GroupSize(plan.mesh, plan.groups[instruction.group]);
  const int64_t element = SizeOf(plan.buffers[instruction.operands[0].buffer].dtype);
  return verifying::LeastScratchBytes(instruction.opcode, instruction.integers.data(), members,
                                      element);
}

// The plan with exactly the scratch that the instruction touches is accepted, with a byte less it
// is refused.
void ExpectBoundIsSharp(Plan plan, int block, int index) {
  Instruction& instruction = plan.blocks[block].instructions[index];
  const std::string& text = TraitsOf(instruction.opcode).text;
  int64_t& bytes = instruction.operands[ScratchOperand(instruction.opcode)].bytes;
  bytes = LeastScratch(plan, instruction);
  EXPECT_TRUE(VerifyPlan(plan).violations.empty()) << text;
  --bytes;
  const std::vector<Violation> violations = VerifyPlan(plan).violations;
  ASSERT_FALSE(violations.empty()) << text;
  EXPECT_EQ(violations[0].rule, "bounds") << text;
  EXPECT_NE(violations[0].message.find("the operation takes"), std::string::npos)
      << violations[0].message;
}

TEST(Scratch, EveryPlanGivesWhatIsTouchedAndLessIsRefused) {
  std::map<Opcode, int> seen;
  for (const MeshCase& mesh_case : AllMeshCases()) {
    const Plan plan = CompileMeshCase(mesh_case);
    for (size_t b = 0; b < plan.blocks.size(); ++b) {
      for (size_t i = 0; i < plan.blocks[b].instructions.size(); ++i) {
        const Instruction& instruction = plan.blocks[b].instructions[i];
        const int operand = ScratchOperand(instruction.opcode);
        if (operand < 0) continue;
        const int64_t least = LeastScratch(plan, instruction);
        EXPECT_GT(least, 0) << InstructionText(plan, plan.blocks[b], instruction);
        EXPECT_LE(least, instruction.operands[operand].bytes)
            << InstructionText(plan, plan.blocks[b], instruction);
        if (seen[instruction.opcode]++ == 0) {
          ExpectBoundIsSharp(plan, static_cast<int>(b), static_cast<int>(i));
        }
      }
    }
  }
  for (int opcode = 0; opcode < kOpcodeCount; ++opcode) {
    const auto code = static_cast<Opcode>(opcode);
    if (ScratchOperand(code) < 0) continue;
    EXPECT_GT(seen[code], 0) << TraitsOf(code).text;
  }
}

// Groups touch all of what they are given, so there is one right number.
TEST(Scratch, CollectivesTakeWhatIsReserved) {
  for (const int64_t members : {1, 2, 3, 8, 64}) {
    for (const int64_t element : {2, 4, 8}) {
      for (const int64_t count : {1, 7, 2048, 2049, 4096, 4097, 8192, 8193, 100'003}) {
        const int64_t integers[] = {count, 0};
        EXPECT_EQ(verifying::LeastScratchBytes(Opcode::kAllReduce, integers, members, element),
                  AllReduceScratchBytes(count, members, element))
            << count << " of " << element << " over " << members;
        EXPECT_EQ(verifying::LeastScratchBytes(Opcode::kReduceScatter, integers, members, element),
                  ReduceScatterScratchBytes(count, members, element))
            << count << " of " << element << " over " << members;
      }
    }
  }
}

}  // namespace
}  // namespace planc
