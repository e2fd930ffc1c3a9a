#include "planc/device_memory.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "planc/example_plan.h"
#include "planc/fit.h"

namespace planc {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

Plan PlanFor(const std::string& device) {
  Plan plan = ExamplePlan();
  plan.job.mutable_cluster()->set_device(device);
  return plan;
}

TEST(DeviceMemoryTest, TheHostHasNoReserve) {
  const Plan plan = PlanFor("host");
  EXPECT_EQ(DeviceReserveOf(plan, plan.classes[0]).bytes, 0);
  EXPECT_EQ(DeviceNeed(plan, plan.classes[0]), DeviceBytes(plan, plan.classes[0]));
}

TEST(DeviceMemoryTest, CountsTheCommunicatorsOfTheRank) {
  const Plan plan = PlanFor("h100-sxm-80gb");
  for (const RankClass& rank_class : plan.classes) {
    const DeviceReserve reserve = DeviceReserveOf(plan, rank_class);
    EXPECT_GE(reserve.communicators, 2);  // data parallel and the other stage
    EXPECT_EQ(reserve.bytes, (int64_t{512} << 20) + reserve.communicators * (int64_t{128} << 20));
  }
}

// A plan may fill what the reserve leaves, and not a byte more.
TEST(DeviceMemoryTest, APlanThatFillsTheDeviceDoesNotFit) {
  Plan plan = PlanFor("h100-sxm-80gb");
  const RankClass& fullest = FullestClass(plan);
  plan.job.mutable_cluster()->set_memory(DeviceNeed(plan, fullest));
  EXPECT_FALSE(ReportMisfit(plan, nullptr, nullptr).has_value());
  plan.job.mutable_cluster()->set_memory(DeviceNeed(plan, fullest) - 1);
  const std::optional<FitReport> report = ReportMisfit(plan, nullptr, nullptr);
  ASSERT_TRUE(report.has_value());
  EXPECT_THAT(report->verdict.notes, Contains(HasSubstr("are a reserve for what libraries take")));
  EXPECT_THAT(report->tables, HasSubstr("reserve"));
}

}  // namespace
}  // namespace planc
