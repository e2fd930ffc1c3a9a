#include "planc/deadline_rule.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "planc/example_plan.h"

namespace planc {
namespace {

using ::testing::HasSubstr;

class DeadlineRuleTest : public ::testing::Test {
 protected:
  DeadlineRuleTest() : plan_(ExamplePlan()) {
    plan_.job.mutable_cluster()->set_device("h100-sxm-80gb");
    wait_ = WaitSeconds();
    // So much work that the longest wait is 100 s.
    for (Block& block : plan_.blocks) {
      for (Instruction& instruction : block.instructions) {
        instruction.cost.flops *= 100 / wait_;
        instruction.cost.bytes_read =
            static_cast<int64_t>(100 / wait_ * static_cast<double>(instruction.cost.bytes_read));
        instruction.cost.bytes_written =
            static_cast<int64_t>(100 / wait_ * static_cast<double>(instruction.cost.bytes_written));
        instruction.cost.bytes_sent =
            static_cast<int64_t>(100 / wait_ * static_cast<double>(instruction.cost.bytes_sent));
      }
    }
    wait_ = WaitSeconds();
  }

  double WaitSeconds() const {
    return LongestWaitOf(plan_, *PredictStep(plan_, *RatesOf(plan_))).seconds;
  }

  DiagnosticList Find(int64_t timeout) {
    plan_.job.mutable_run()->set_stall_timeout(timeout);
    DiagnosticList list;
    AddDeadlineFinding(plan_, nullptr, &list);
    return list;
  }

  Plan plan_;
  double wait_ = 0;
};

TEST_F(DeadlineRuleTest, ShorterThanTheLongestWaitIsAnError) {
  ASSERT_NEAR(wait_, 100, 1);
  const DiagnosticList list = Find(static_cast<int64_t>(wait_) - 1);
  ASSERT_EQ(list.entries().size(), 1u);
  const Diagnostic& error = list.entries()[0];
  EXPECT_EQ(error.code, DiagnosticCode::kStallTimeoutTooShort);
  EXPECT_EQ(error.severity, Severity::kError);
  EXPECT_THAT(error.message, HasSubstr("run.stall_timeout is 9"));
  EXPECT_THAT(error.message, HasSubstr(" of stage "));
  EXPECT_THAT(error.fix, HasSubstr("4 times the prediction"));
}

TEST_F(DeadlineRuleTest, LessThanTheMarginIsAWarning) {
  const DiagnosticList list = Find(static_cast<int64_t>(wait_) + 1);
  ASSERT_EQ(list.entries().size(), 1u);
  EXPECT_EQ(list.entries()[0].severity, Severity::kWarning);
  EXPECT_TRUE(Find(static_cast<int64_t>(4 * wait_) + 1).entries().empty());
  EXPECT_TRUE(Find(0).entries().empty());
}

TEST_F(DeadlineRuleTest, AHostMayBeFasterThanTheCatalogue) {
  plan_.job.mutable_cluster()->set_device("host");
  const double wait = WaitSeconds();
  EXPECT_EQ(Find(static_cast<int64_t>(wait / 16) - 1).entries()[0].severity, Severity::kError);
  EXPECT_EQ(Find(static_cast<int64_t>(wait / 16) + 1).entries()[0].severity, Severity::kWarning);
}

// A rank that waits for the stage before it does not move either.
TEST_F(DeadlineRuleTest, WaitingForAnotherStageCounts) {
  StepPrediction step;
  step.stages.resize(2);
  step.stages[0] = {{0, 0, 0, 0, 0, 30}, {0, 0, 0, 0, 30, 50}};
  step.stages[1] = {{0, 0, 1, 0, 50, 60}, {0, 0, 1, 0, 55, 61}};
  const LongestWait wait = LongestWaitOf(plan_, step);
  EXPECT_EQ(wait.seconds, 60);
  EXPECT_EQ(wait.stage, 1);
  EXPECT_THAT(wait.instruction, HasSubstr("layer 1 microbatch 0"));
}

}  // namespace
}  // namespace planc
