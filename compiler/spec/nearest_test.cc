#include "compiler/spec/nearest.h"

#include <cstdint>
#include <vector>

#include "gtest/gtest.h"

namespace planc {
namespace {

using Values = std::vector<int64_t>;

TEST(NearestTest, DivisorsOnBothSidesTheCloserFirst) {
  EXPECT_EQ(NearestDivisors(32, 6), (Values{4, 8}));
  EXPECT_EQ(NearestDivisors(32, 7), (Values{8, 4}));
  EXPECT_EQ(NearestDivisors(8, 16), (Values{8}));
  EXPECT_EQ(NearestDivisors(7, 2), (Values{1, 7}));
  EXPECT_EQ(NearestDivisors(1, 2), (Values{1}));
}

TEST(NearestTest, AllDivisorsByRatio) {
  EXPECT_EQ(DivisorsByDistance(12, 4), (Values{4, 3, 6, 2, 12, 1}));
  EXPECT_EQ(DivisorsByDistance(1, 4), (Values{1}));
}

TEST(NearestTest, Multiples) {
  EXPECT_EQ(NearestMultiples(4, 10), (Values{8, 12}));
  EXPECT_EQ(NearestMultiples(4, 11), (Values{12, 8}));
  EXPECT_EQ(NearestMultiples(16, 5), (Values{16}));
}

}  // namespace
}  // namespace planc
