#include "runtime/process_group/descriptor_need.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "schemas/fault.h"

namespace planc {
namespace {

using ::testing::HasSubstr;

// Every rank reduces over the data-parallel axis.
Plan ReducingPlan(int64_t ranks, int64_t ranks_per_node) {
  Plan plan;
  plan.mesh.size = {1, 1, ranks, 1, 1};
  plan.ranks_per_node = ranks_per_node;
  plan.groups = {{"dp", AxisBit(Axis::kDpShard), false}};
  Instruction reduce;
  reduce.opcode = Opcode::kAllReduce;
  reduce.group = 0;
  reduce.stream = Stream::kData;
  plan.blocks = {{"reduce", {}, {reduce}}};
  RankClass rank_class;
  rank_class.programs[static_cast<int>(ProgramKind::kStep)].steps = {
      Repeat{1, 0, {Call{0, -1, -1, {}}}}};
  plan.classes = {rank_class};
  return plan;
}

TEST(DescriptorNeedTest, OneRankHasNoConnections) {
  EXPECT_EQ(DescriptorsOf(ReducingPlan(1, 1), 0).total(), 32);
}

TEST(DescriptorNeedTest, OnOneMachineAGroupIsItsMemory) {
  const DescriptorNeed first = DescriptorsOf(ReducingPlan(8, 8), 0);
  EXPECT_EQ(first.of_store, 3 + 3 * 8);
  EXPECT_EQ(first.of_groups, 1);
  const DescriptorNeed other = DescriptorsOf(ReducingPlan(8, 8), 7);
  EXPECT_EQ(other.of_store, 3);
  EXPECT_EQ(other.of_groups, 1);
}

TEST(DescriptorNeedTest, OnManyMachinesEveryMemberIsAConnection) {
  const Plan plan = ReducingPlan(10'000, 8);
  const DescriptorNeed most = MostDescriptors(plan);
  EXPECT_EQ(most.rank, 0);
  EXPECT_EQ(most.of_store, 30'003);
  EXPECT_EQ(most.of_groups, 9'999 + 3);
  EXPECT_EQ(most.total(), 40'037);
  EXPECT_EQ(DescriptorsOf(plan, 9'999).total(), 3 + 9'999 + 3 + 32);
}

TEST(DescriptorNeedTest, WhatIsNotAllowedIsRefusedWithNumbers) {
  const Plan plan = ReducingPlan(10'000, 8);
  EXPECT_TRUE(CheckDescriptors(plan, 0, 40'037).ok());
  const absl::Status status = CheckDescriptors(plan, 0, 40'036);
  EXPECT_EQ(FaultOf(status), Fault::kEnvironment);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("rank 0 needs 40037 open files: 30003 connections to the store, 10002 for "
                        "its groups and 32 for data, logs and checkpoints, and this process may "
                        "have 40036"));
}

}  // namespace
}  // namespace planc
