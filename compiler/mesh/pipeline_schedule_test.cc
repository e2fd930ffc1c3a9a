#include "compiler/mesh/pipeline_schedule.h"

#include <algorithm>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace planc {
namespace {

using testing::ElementsAre;

PipelineShape Shape(proto::Schedule schedule, int p, int m, int v = 1) {
  return {schedule, p, v, m};
}

struct Vector {
  proto::Schedule schedule;
  int p, m, v;
  double makespan;
  std::vector<double> peak;  // per stage
};

// Durations F = 1, B = 2: bubble (p-1)(F+B)/v over m(F+B).
const Vector kVectors[] = {
    {proto::GPIPE, 2, 4, 1, 15, {4, 4}},
    {proto::GPIPE, 4, 4, 1, 21, {4, 4, 4, 4}},
    {proto::GPIPE, 4, 8, 1, 33, {8, 8, 8, 8}},
    {proto::ONE_F_ONE_B, 2, 4, 1, 15, {2, 1}},
    {proto::ONE_F_ONE_B, 4, 4, 1, 21, {4, 3, 2, 1}},
    {proto::ONE_F_ONE_B, 4, 16, 1, 57, {4, 3, 2, 1}},
    {proto::ONE_F_ONE_B, 8, 32, 1, 117, {8, 7, 6, 5, 4, 3, 2, 1}},
    {proto::INTERLEAVED_1F1B, 2, 4, 2, 13.5, {2.5, 1.5}},
    {proto::INTERLEAVED_1F1B, 2, 4, 4, 12.75, {2.25, 1.75}},
    {proto::INTERLEAVED_1F1B, 4, 4, 2, 16.5, {4, 4, 3.5, 2.5}},
    {proto::INTERLEAVED_1F1B, 4, 8, 2, 28.5, {5.5, 4.5, 3.5, 2.5}},
    {proto::INTERLEAVED_1F1B, 4, 8, 4, 26.25, {4.75, 4.25, 3.75, 3.25}},
    {proto::INTERLEAVED_1F1B, 8, 16, 2, 58.5, {11.5, 10.5, 9.5, 8.5, 7.5, 6.5, 5.5, 4.5}},
};

TEST(PipelineSchedule, MakespanAndPeakEqualThePublishedFormulas) {
  for (const Vector& vector : kVectors) {
    const PipelineShape shape = Shape(vector.schedule, vector.p, vector.m, vector.v);
    const ScheduleTiming timing = SimulateSchedule(shape, 1, 2);
    EXPECT_DOUBLE_EQ(timing.makespan, vector.makespan) << vector.p << "," << vector.m;
    EXPECT_EQ(timing.peak, vector.peak) << vector.p << "," << vector.m << "," << vector.v;
  }
}

// Chunk order of the interleaved schedule, groups of p microbatches.
TEST(PipelineSchedule, InterleavedForwardsRunGroupByGroup) {
  std::vector<std::pair<int, int>> order;
  for (const PipelineAction& a : ForwardOrder(Shape(proto::INTERLEAVED_1F1B, 2, 4, 2), 0)) {
    order.push_back({a.microbatch, a.chunk});
  }
  using P = std::pair<int, int>;
  EXPECT_THAT(order,
              ElementsAre(P{0, 0}, P{1, 0}, P{0, 1}, P{1, 1}, P{2, 0}, P{3, 0}, P{2, 1}, P{3, 1}));
}

TEST(PipelineSchedule, WarmUpsOfInterleavedP4M8V2) {
  std::vector<int> warm_ups;
  for (int stage = 0; stage < 4; ++stage) {
    const auto order = PipelineOrder(Shape(proto::INTERLEAVED_1F1B, 4, 8, 2), stage);
    const auto first_backward = std::find_if(order.begin(), order.end(),
                                             [](const PipelineAction& a) { return !a.forward; });
    // The steady state begins with a forward.
    warm_ups.push_back(static_cast<int>(first_backward - order.begin()) - 1);
  }
  EXPECT_THAT(warm_ups, ElementsAre(10, 8, 6, 4));
}

TEST(PipelineSchedule, EveryActionOnceAndForwardBeforeBackward) {
  for (const Vector& vector : kVectors) {
    const PipelineShape shape = Shape(vector.schedule, vector.p, vector.m, vector.v);
    for (int stage = 0; stage < vector.p; ++stage) {
      std::vector<PipelineAction> seen;
      for (const PipelineAction& action : PipelineOrder(shape, stage)) {
        EXPECT_EQ(std::count(seen.begin(), seen.end(), action), 0);
        if (!action.forward) {
          PipelineAction forward = action;
          forward.forward = true;
          EXPECT_EQ(std::count(seen.begin(), seen.end(), forward), 1);
        }
        seen.push_back(action);
      }
      EXPECT_EQ(static_cast<int>(seen.size()), 2 * vector.m * vector.v);
    }
  }
}

}  // namespace
}  // namespace planc
