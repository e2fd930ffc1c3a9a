#include "schemas/plan_text.h"

#include <gtest/gtest.h>

#include <string>

#include "schemas/plan.h"

namespace planc {
namespace {

Plan SmallPlan() {
  Plan plan;
  plan.job.set_job("small");
  plan.mesh.size = {1, 1, 2, 1, 1};
  plan.groups = {{"dp_shard", AxisBit(Axis::kDpShard), false}};
  plan.pools = {{"acts", MemoryKind::kActivations, 128}, {"weights", MemoryKind::kWeights, 64}};
  plan.buffers = {{"x", 0, 0, 64, DType::kF32, {4, 4}, {}},
                  {"y", 0, 64, 64, DType::kF32, {4, 4}, {}},
                  {"w", 1, 0, 64, DType::kF32, {4, 4}, {}}};
  plan.buffers[2].layout[Axis::kDpShard] = AxisLayout::PartialSum();
  plan.events = {{"w_ready", 1, Stream::kData}};
  Block block{"layer", {0, 1, 0}, {}};
  Instruction multiply;
  multiply.opcode = Opcode::kMatmulAdd;
  multiply.operands = {{0, 0, 0, 0, 64}, {2, 1, 0, 0, 64}, {1, 2, 16, 8, 32}};
  multiply.integers = {4, 4, 4, 0, 1};
  multiply.waits = {{0, 1}};
  multiply.cost.flops = 128;
  block.instructions = {multiply};
  plan.blocks = {block};
  RankClass rank_class;
  rank_class.layers = {0, 1};
  rank_class.pool_slots = {3, 1};
  rank_class.pool_bases = {0, 0};
  rank_class.arena_bytes[3] = 384;
  rank_class.programs[2].steps = {{4, 1, {{0, 1, 0, {2, 0, 1}}}}};
  plan.classes = {rank_class};
  return plan;
}

TEST(PlanText, Instruction) {
  const Plan plan = SmallPlan();
  EXPECT_EQ(InstructionText(plan, plan.blocks[0], plan.blocks[0].instructions[0]),
            "compute   forward          matmul_add(x@0, w, &y@2[16+dp_shard*8:32])"
            "  m=4 n=4 k=4 transpose_a=0 transpose_b=1  wait w_ready");
}

TEST(PlanText, CallLeavesOutPoolsOfOneSlot) {
  const Plan plan = SmallPlan();
  EXPECT_EQ(CallText(plan, {0, 1, 5, {2, 0, 1}}),
            "layer                layer=1 mb=5 acts[2] acts[1]");
}

TEST(PlanText, ProgramShowsRepeats) {
  const Plan plan = SmallPlan();
  EXPECT_EQ(ProgramText(plan, plan.classes[0].programs[2]),
            "    4 times, mb+1\n      layer                layer=1 mb=0 acts[2] acts[1]\n");
}

TEST(PlanText, WholePlanHasEveryTable) {
  const std::string text = PlanText(SmallPlan());
  for (const char* part :
       {"plan small\n  mesh pp=1 dp_replicate=1 dp_shard=2 cp=1 tp=1\n", "\ngroups\n", "\npools\n",
        "\nbuffers\n", "\nevents\n", "\nunits\n", "\nparameters\n",
        "\nblock layer(acts, weights, acts)", "\nclass stage 0  layers [0,1]", "  program step\n",
        "flops=128", "dp_shard:P"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
}

TEST(PlanText, PrintsIndicesWithoutARow) {
  Plan plan = SmallPlan();
  Instruction& instruction = plan.blocks[0].instructions[0];
  instruction.operands[0].buffer = 77;
  instruction.operands[1].buffer = -5;
  instruction.waits[0].event = 99;
  instruction.group = 12;
  instruction.integers.resize(9);
  plan.buffers[0].pool = -3;
  plan.scalars.loss = 1000;
  plan.classes[0].programs[0].steps = {{1, 0, {{8, -1, -1, {1, 2, 3, 4}}}}};
  const std::string text = PlanText(plan);
  EXPECT_NE(text.find("?77"), std::string::npos);
  EXPECT_NE(text.find("?-5"), std::string::npos);
  EXPECT_NE(text.find("wait ?99"), std::string::npos);
}

TEST(RealText, IsTheShortestThatReadsBack) {
  EXPECT_EQ(RealText(0.1), "0.1");
  EXPECT_EQ(RealText(1e-5), "1e-05");
  EXPECT_EQ(RealText(201326592), "201326592");
}

}  // namespace
}  // namespace planc
