#include "planc/schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "planc/example_plan.h"
#include "schemas/plan.h"

namespace planc {
namespace {

// A product takes 2 s, a transfer 1 s between nodes; all else is free.
constexpr Rates kRates = {1e6, 1e18, 1e18, 4096};

std::vector<StepSpan> SpansOf(const Plan& plan, const std::vector<StepSpan>& spans, Opcode opcode) {
  std::vector<StepSpan> found;
  for (const StepSpan& span : spans) {
    if (plan.blocks[span.block].instructions[span.instruction].opcode == opcode) {
      found.push_back(span);
    }
  }
  return found;
}

TEST(PredictStep, SecondStageStartsWhenTheFirstTransferIsDone) {
  const Plan plan = ExamplePlan();
  const absl::StatusOr<StepPrediction> schedule = PredictStep(plan, kRates);
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  ASSERT_EQ(schedule->stages.size(), 2u);
  const std::vector<StepSpan> sends = SpansOf(plan, schedule->stages[0], Opcode::kSend);
  const std::vector<StepSpan> receives = SpansOf(plan, schedule->stages[1], Opcode::kRecv);
  ASSERT_EQ(sends.size(), 4u);
  ASSERT_EQ(receives.size(), 4u);
  // Two layers of 2 s, then the transfer.
  EXPECT_NEAR(sends[0].begin, 4, 1e-6);
  EXPECT_NEAR(sends[0].end, 5, 1e-6);
  for (int m = 0; m < 4; ++m) EXPECT_NEAR(receives[m].begin, sends[m].begin, 1e-9);
}

TEST(PredictStep, ComputeOfOneStageNeverOverlapsItself) {
  const Plan plan = ExamplePlan();
  const absl::StatusOr<StepPrediction> schedule = PredictStep(plan, kRates);
  ASSERT_TRUE(schedule.ok());
  for (const std::vector<StepSpan>& spans : schedule->stages) {
    double end = 0;
    for (const StepSpan& span : spans) {
      if (plan.blocks[span.block].instructions[span.instruction].stream != Stream::kCompute)
        continue;
      EXPECT_GE(span.begin, end);
      end = span.end;
    }
    EXPECT_LE(end, schedule->seconds);
  }
}

TEST(PredictStep, ReportsAStepThatCannotFinish) {
  Plan plan = ExamplePlan();
  // The second stage never receives: the first waits for ever.
  for (Block& block : plan.blocks) {
    if (block.name == "recv_forward") block.instructions.clear();
  }
  EXPECT_EQ(PredictStep(plan, kRates).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST(PredictStep, RefusesIndicesWithoutARow) {
  Plan plan = ExamplePlan();
  plan.classes[0].programs[2].steps[0].calls[0].block = 99;
  EXPECT_FALSE(PredictStep(plan, kRates).ok());
  plan = ExamplePlan();
  plan.blocks[0].instructions[0].waits = {{0, 7}};
  EXPECT_FALSE(PredictStep(plan, kRates).ok());
}

TEST(RatesOf, NeedsACatalogueDevice) {
  Plan plan = ExamplePlan();
  EXPECT_TRUE(RatesOf(plan).ok());
  plan.job.mutable_cluster()->set_device("abacus");
  EXPECT_EQ(RatesOf(plan).status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace planc
