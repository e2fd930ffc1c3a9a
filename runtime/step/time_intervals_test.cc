#include "runtime/step/time_intervals.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace planc {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(TimeIntervals, UnionMergesWhatOverlapsOrTouches) {
  EXPECT_THAT(UnionOf({{5, 7}, {0, 3}, {2, 4}, {7, 9}, {20, 20}, {12, 15}, {13, 14}}),
              ElementsAre(TimeInterval{0, 4}, TimeInterval{5, 9}, TimeInterval{12, 15}));
  EXPECT_THAT(UnionOf({}), IsEmpty());
}

TEST(TimeIntervals, DifferenceKeepsWhatIsNotRemoved) {
  const std::vector<TimeInterval> whole = {{0, 10}, {20, 30}, {40, 50}};
  EXPECT_EQ(DifferenceOf(whole, {}), whole);
  EXPECT_THAT(DifferenceOf(whole, {{0, 100}}), IsEmpty());
  // One piece inside, one that reaches over two intervals, one that only touches.
  EXPECT_THAT(DifferenceOf(whole, {{2, 3}, {8, 25}, {50, 60}}),
              ElementsAre(TimeInterval{0, 2}, TimeInterval{3, 8}, TimeInterval{25, 30},
                          TimeInterval{40, 50}));
  EXPECT_THAT(DifferenceOf({}, {{0, 1}}), IsEmpty());
}

TEST(TimeIntervals, Length) {
  EXPECT_EQ(LengthOf({{0, 4}, {5, 9}}), 8);
  EXPECT_EQ(LengthOf({}), 0);
}

}  // namespace
}  // namespace planc
