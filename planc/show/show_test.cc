#include "planc/show/show.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "planc/example_plan.h"
#include "planc/show/comm_table.h"
#include "planc/text.h"

namespace planc {
namespace {

ShowInput InputOf(const Plan& plan, int64_t rank = -1) {
  return {plan, *PlanHash(plan), Certificate(), PredictStep(plan, *RatesOf(plan)), rank};
}

bool Has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Show, EverySectionFitsTheColumnsAndHasData) {
  const Plan plan = ExamplePlan();
  for (int64_t rank : {-1, 0, 5}) {
    for (const std::string& name : SectionNames()) {
      const ShowSection section = MakeSection(name, InputOf(plan, rank));
      EXPECT_EQ(section.name, name);
      EXPECT_FALSE(section.data.empty()) << name;
      ASSERT_FALSE(section.text.empty()) << name;
      EXPECT_EQ(section.text.back(), '\n') << name;
      const std::vector<std::string> lines = absl::StrSplit(section.text, '\n');
      for (const std::string& line : lines) EXPECT_LE(line.size(), size_t{kColumns}) << line;
    }
  }
}

TEST(Show, PinnedHostMemoryCountsOnTheHostOnly) {
  Plan plan = ExamplePlan();
  const std::string before = ShowSummary(InputOf(plan)).data["largest_rank_bytes"].dump();
  for (RankClass& rank_class : plan.classes) {
    rank_class.arena_bytes[static_cast<int>(MemoryKind::kHostPinned)] = int64_t{3} << 40;
  }
  plan.job.mutable_cluster()->set_device("h100-sxm-80gb");
  ShowSection summary = ShowSummary(InputOf(plan));
  EXPECT_EQ(summary.data["largest_rank_bytes"].dump(), before);
  EXPECT_TRUE(Has(summary.text, "on the fullest rank, and 3.00 TiB of host memory"))
      << summary.text;
  plan.job.mutable_cluster()->set_device("host");
  summary = ShowSummary(InputOf(plan));
  EXPECT_GT(summary.data["largest_rank_bytes"].get<int64_t>(), int64_t{3} << 40);
  EXPECT_FALSE(Has(summary.text, "of host memory"));
}

TEST(Show, MeshJoinsCellsOfEqualCoordinates) {
  const std::string text = ShowMesh(InputOf(ExamplePlan())).text;
  EXPECT_TRUE(Has(text,
                  "  node 1        +-----+-----+-----+-----+\n"
                  "  pp            |           1           |\n"
                  "  dp_shard      |     0     |     1     |\n"
                  "  tp            |  0  |  1  |  0  |  1  |\n"
                  "  device        |  0  |  1  |  2  |  3  |\n"
                  "  rank          |  4  |  5  |  6  |  7  |\n"
                  "                +-----+-----+-----+-----+\n"))
      << text;
}

TEST(Show, LargeMeshIsElidedWithExactCounts) {
  Plan plan = ExamplePlan();
  plan.mesh.size = {2, 1, 128, 1, 8};
  plan.ranks_per_node = 8;
  EXPECT_TRUE(Has(ShowMesh(InputOf(plan)).text, "... 251 more nodes ..."));
  EXPECT_TRUE(Has(ShowGroups(InputOf(plan)).text, "tp: 256 groups of 8 ranks over tp"));
  EXPECT_TRUE(Has(ShowGroups(InputOf(plan)).text, "... and 248 more groups"));
  EXPECT_TRUE(Has(ShowRanks(InputOf(plan)).text, "... and 2046 more ranks"));
}

TEST(Show, GroupsNameTheirMembers) {
  const std::string text = ShowGroups(InputOf(ExamplePlan())).text;
  EXPECT_TRUE(Has(text,
                  "  tp: 4 groups of 2 ranks over tp\n"
                  "    0:0-1\n    0:2-3\n    1:0-1\n    1:2-3\n"
                  "  dp_shard: 4 groups of 2 ranks over dp_shard\n"
                  "    0:0 0:2\n"))
      << text;
  EXPECT_TRUE(Has(ShowGroups(InputOf(ExamplePlan(), 6)).text,
                  "dp_shard: 4 groups of 2 ranks over dp_shard\n    1:0 1:2\n"));
}

TEST(Show, MemoryMergesEqualStagesAndShowsTheBound) {
  const std::string text = ShowMemory(InputOf(ExamplePlan())).text;
  EXPECT_TRUE(Has(text, "each of the 8 ranks of stage 0-1")) << text;
  // x of three microbatches beside x and y of the fourth; all of the other kinds.
  EXPECT_TRUE(Has(text, "activations  32.0 KiB  32,768     20,480  1.600")) << text;
  EXPECT_TRUE(Has(text, "total        72.0 KiB  73,728     61,440  1.200")) << text;
  EXPECT_TRUE(Has(text, "bound 1.00 MiB (cluster.memory), 7.0% used, 952 KiB free")) << text;
  Plan plan = ExamplePlan();
  plan.classes[1].programs = {};
  EXPECT_TRUE(Has(ShowMemory(InputOf(plan)).text, "each of the 4 ranks of stage 0\n"));
}

TEST(Show, CommCountsCallsAndBytes) {
  const Plan plan = ExamplePlan();
  const std::vector<CommRow> rows = CommTable(plan, plan.classes[0], ProgramKind::kStep);
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[0].opcode, Opcode::kAllReduce);
  EXPECT_EQ(rows[0].calls, 8);  // two layers, four microbatches
  EXPECT_EQ(rows[0].bytes_per_rank, 8 * 4096);
  EXPECT_EQ(rows[1].calls, 2);  // one for each layer
  const nlohmann::ordered_json data = ShowComm(InputOf(plan)).data;
  EXPECT_EQ(data[0]["bytes"], 8 * 8 * 4096);
  EXPECT_EQ(data[0]["stages"], (std::vector<int64_t>{0, 1}));
}

TEST(Show, CommSeparatesTypesAndCountsCommunicators) {
  Plan plan = ExamplePlan();
  const std::vector<CommRow> before = CommTable(plan, plan.classes[0], ProgramKind::kStep);
  const std::string one_type = ShowComm(InputOf(plan)).text;
  EXPECT_TRUE(Has(one_type, "all_reduce      f32")) << one_type;
  EXPECT_TRUE(Has(one_type, " a rank, one for each group and stream")) << one_type;
  // The same exchange of another type in one block is a row of its own.
  for (Block& block : plan.blocks) {
    for (size_t i = 0; i < block.instructions.size(); ++i) {
      if (block.instructions[i].opcode != Opcode::kAllReduce) continue;
      Instruction again = block.instructions[i];
      plan.buffers.push_back(plan.buffers[again.operands[0].buffer]);
      plan.buffers.back().dtype = DType::kBF16;
      again.operands[0].buffer = static_cast<int>(plan.buffers.size()) - 1;
      block.instructions.push_back(again);
      break;
    }
  }
  EXPECT_GT(CommTable(plan, plan.classes[0], ProgramKind::kStep).size(), before.size());
  EXPECT_TRUE(Has(ShowComm(InputOf(plan)).text, "bf16"));
}

TEST(Show, TimelineDrawsEachStage) {
  const std::string text = ShowTimeline(InputOf(ExamplePlan())).text;
  EXPECT_TRUE(Has(text, "  stage 1, compute busy ")) << text;
  // Microbatches in order, forward before backward.
  EXPECT_TRUE(Has(text, "forward  |0")) << text;
  Plan plan = ExamplePlan();
  plan.blocks[2].instructions.clear();
  EXPECT_TRUE(Has(ShowTimeline(InputOf(plan)).text, "no prediction: the step cannot finish"));
}

TEST(Show, ProgramOfOneRankHasItsBlocksOnly) {
  const std::string text = ShowProgram(InputOf(ExamplePlan(), 0)).text;
  EXPECT_TRUE(Has(text, "rank 0 on node 0 device 0"));
  EXPECT_TRUE(Has(text, "block send_forward(acts)"));
  EXPECT_FALSE(Has(text, "block recv_forward(acts)"));
  EXPECT_TRUE(Has(ShowProgram(InputOf(ExamplePlan())).text, "block recv_forward(acts)"));
}

TEST(Show, TraceHasASpanForEachInstruction) {
  const Plan plan = ExamplePlan();
  const StepPrediction schedule = *PredictStep(plan, *RatesOf(plan));
  const nlohmann::ordered_json trace = TraceOf(plan, schedule);
  size_t spans = 0;
  for (const auto& event : trace["traceEvents"]) spans += event["ph"] == "X" ? 1 : 0;
  EXPECT_EQ(spans, schedule.stages[0].size() + schedule.stages[1].size());
}

}  // namespace
}  // namespace planc
