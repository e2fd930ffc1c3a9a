// What the comparison with PyTorch would say if a module were missing: plans are edited, never
// verified, and run. Each must exceed the bounds of parity_test by a wide margin.
#include <gtest/gtest.h>

#include <cstdio>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/mesh_run.h"
#include "tests/parity/compare.h"
#include "tests/parity/leave_out.h"
#include "tests/parity/parity_case.h"

namespace planc {
namespace {

class LeaveOut : public testing::TestWithParam<ParityCase> {
 protected:
  void SetUp() override {
    const std::string checkpoint =
        absl::StrCat(testing::TempDir(), "/left_out_", ParityCaseName(GetParam()));
    plan_ = CompileParityCase(GetParam(), {absl::StrCat("checkpoint.resume=", checkpoint)});
    ASSERT_NO_FATAL_FAILURE(ImportFixture(GetParam(), plan_, checkpoint));
    reference_ = ReadParityReference(GetParam().family);
    bounds_ = BoundsOf(GetParam(), reference_);
  }

  // How many times its bounds a run of `plan` is off; a run that ends with an error, infinitely.
  Distances ExcessOf(const Plan& plan) const {
    const MeshRun run = RunParityCase(GetParam(), plan);
    if (run.errors.empty()) return Excess(DistancesBetween(run, reference_), bounds_);
    Distances infinite;
    infinite.loss = std::numeric_limits<double>::infinity();
    infinite.token_losses = infinite.loss;
    return infinite;
  }

  // How many times a bound a run without a module must be off, at least.
  static double Factor() { return GetParam().precision == "fp32" ? 1000 : 3; }

  Plan plan_;
  ParityReference reference_;
  Distances bounds_;
};

// On one rank and on eight.
class LeaveOutModule : public LeaveOut {};

TEST_P(LeaveOutModule, IsSeen) {
  EXPECT_LT(Largest(ExcessOf(plan_)), 1);
  int modules = 0;
  for (const LeftOut& left_out : AllLeftOut()) {
    Plan plan = plan_;
    if (!left_out.apply(plan)) continue;
    ++modules;
    const Distances excess = ExcessOf(plan);
    std::printf("%-6s %s without %-26s loss %9.1f, tokens %9.1f, gradients %9.1f, updates %9.1f\n",
                GetParam().family.c_str(), GetParam().precision.c_str(), left_out.name.c_str(),
                excess.loss, excess.token_losses, excess.gradients.distance,
                excess.updates.distance);
    EXPECT_GT(Largest(excess), Factor()) << left_out.name;
    // The numbers tell, not an error.
    EXPECT_LT(Largest(excess), std::numeric_limits<double>::infinity()) << left_out.name;
    if (left_out.forward && GetParam().mesh.empty()) {
      EXPECT_GT(excess.token_losses, Factor()) << left_out.name;
    }
  }
  const std::map<std::string, int> expected = {
      {"llama", 11}, {"qwen2", 12}, {"qwen3", 12}, {"gpt2", 19}};
  EXPECT_EQ(modules, expected.at(GetParam().family));
}

TEST_P(LeaveOut, ModulesInsideOfInstructionsAreSeen) {
  const MeshRun run = RunParityCase(GetParam(), plan_);
  ASSERT_TRUE(run.errors.empty()) << run.errors.front();
  EXPECT_EQ(reference_.without.size(), GetParam().family == "gpt2" ? 2 : 4);
  for (const auto& [module, losses] : reference_.without) {
    const double excess = TokenDistance(run.token_losses, losses) / bounds_.token_losses;
    std::printf("%-6s %s without %-26s tokens %9.1f\n", GetParam().family.c_str(),
                GetParam().precision.c_str(), module.c_str(), excess);
    EXPECT_GT(excess, Factor()) << module;
  }
}

TEST_P(LeaveOut, EveryInstructionIsSeen) {
  double smallest = std::numeric_limits<double>::infinity();
  std::string text;
  const std::vector<InstructionPlace> places = StepInstructions(plan_);
  EXPECT_GT(places.size(), 40);
  for (const InstructionPlace& place : places) {
    Plan plan = plan_;
    Block& block = plan.blocks[place.block];
    const Instruction dropped = block.instructions[place.instruction];
    block.instructions.erase(block.instructions.begin() + place.instruction);
    const double excess = Largest(ExcessOf(plan));
    const std::string name = absl::StrCat(block.name, ": ", TraitsOf(dropped.opcode).text);
    EXPECT_GT(excess, Factor()) << name << ", instruction " << place.instruction;
    if (excess > smallest) continue;
    smallest = excess;
    text = name;
  }
  std::printf("%zu instructions, each left out; at least %.1f times a bound (%s)\n", places.size(),
              smallest, text.c_str());
}

INSTANTIATE_TEST_SUITE_P(OneRank, LeaveOutModule, testing::ValuesIn(OneRankCases()),
                         [](const auto& info) { return ParityCaseName(info.param); });
INSTANTIATE_TEST_SUITE_P(Mesh, LeaveOutModule, testing::ValuesIn(MeshParityCases()),
                         [](const auto& info) { return ParityCaseName(info.param); });
INSTANTIATE_TEST_SUITE_P(Models, LeaveOut, testing::ValuesIn(OneRankCases()),
                         [](const auto& info) { return ParityCaseName(info.param); });

}  // namespace
}  // namespace planc
