// No attribute that the runtime obeys lacks a rule: each attribute of each opcode, changed in each
// block that has it, is refused in every plan of the mesh cases.
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "schemas/verify.h"
#include "tests/mesh_cases.h"

namespace planc {
namespace {

// Whether the change leaves what the instruction does as it is: a bit for an axis with one rank,
// and the place of a rank's rows where tp has one rank.
bool IsWithoutEffect(const Plan& plan, const std::string& name, int64_t before, int64_t after) {
  if (name == "row_stride") return plan.mesh[Axis::kTp] == 1;
  if (name != "once_axes" || after < 0 || after >= (1 << kAxisCount)) return false;
  for (Axis axis : kAllAxes) {
    if (((before ^ after) & AxisBit(axis)) != 0 && plan.mesh[axis] > 1) return false;
  }
  return true;
}

std::set<int> CalledBlocks(const Plan& plan) {
  std::set<int> called;
  for (const RankClass& rank_class : plan.classes) {
    for (const Program& program : rank_class.programs) {
      ForEachCall(program, [&](const Call& call) { called.insert(call.block); });
    }
  }
  return called;
}

class AttributeRulesTest : public testing::Test {
 protected:
  // Changes every attribute of the instruction and expects a violation each time.
  void TryInstruction(const std::string& mesh_case, Plan& plan, Instruction& instruction) {
    const OpcodeTraits& traits = TraitsOf(instruction.opcode);
    for (size_t k = 0; k < traits.integers.size(); ++k) {
      for (const int64_t delta : {1, -1, 16, 64}) {
        const int64_t before = instruction.integers[k];
        if (IsWithoutEffect(plan, traits.integers[k], before, before + delta)) continue;
        instruction.integers[k] += delta;
        Expect(mesh_case, plan, instruction.opcode, traits.integers[k], delta);
        instruction.integers[k] = before;
      }
    }
    for (size_t k = 0; k < traits.reals.size(); ++k) {
      const double before = instruction.reals[k];
      instruction.reals[k] = before * 1.0001 + 1e-6;
      Expect(mesh_case, plan, instruction.opcode, traits.reals[k], 0);
      instruction.reals[k] = before;
    }
  }

  void Expect(const std::string& mesh_case, const Plan& plan, Opcode opcode,
              const std::string& attribute, int64_t delta) {
    tried_.insert({opcode, attribute});
    EXPECT_FALSE(VerifyPlan(plan).violations.empty())
        << mesh_case << ": " << TraitsOf(opcode).text << " " << attribute << " += " << delta;
  }

  std::set<std::pair<Opcode, std::string>> tried_;
};

TEST_F(AttributeRulesTest, EveryAttributeHasARule) {
  // Of each family, one mesh of each kind is enough: the rules do not depend on the rest.
  std::map<std::pair<int, std::string>, int> seen;
  std::vector<MeshCase> cases = AllMeshCases();
  cases.push_back({"llama_bf16", "llama", {"precision.compute=bf16"}});
  for (const MeshCase& mesh_case : cases) {
    Plan plan = CompileMeshCase(mesh_case);
    for (const int b : CalledBlocks(plan)) {
      for (Instruction& instruction : plan.blocks[b].instructions) {
        const std::string where =
            absl::StrCat(plan.blocks[b].name, plan.mesh[Axis::kPp] > 1, plan.mesh[Axis::kTp] > 1);
        if (++seen[{static_cast<int>(instruction.opcode), where}] > 2) continue;
        TryInstruction(mesh_case.name, plan, instruction);
      }
    }
  }
  for (int o = 0; o < kOpcodeCount; ++o) {
    const OpcodeTraits& traits = TraitsOf(static_cast<Opcode>(o));
    for (const auto* names : {&traits.integers, &traits.reals}) {
      for (const std::string& name : *names) {
        EXPECT_TRUE(tried_.count({static_cast<Opcode>(o), name}) != 0)
            << traits.text << " " << name << " was not tried";
      }
    }
  }
}

}  // namespace
}  // namespace planc
