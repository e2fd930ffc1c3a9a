#include "compiler/spec/nearest.h"

#include "gtest/gtest.h"

namespace planc {
namespace {

TEST(NearestTest, DivisorsOnBothSidesTheCloserFirst) {
  EXPECT_EQ(NearestDivisors(32, 6), "4 or 8");
  EXPECT_EQ(NearestDivisors(32, 7), "8 or 4");
  EXPECT_EQ(NearestDivisors(8, 16), "8");
  EXPECT_EQ(NearestDivisors(7, 2), "1 or 7");
  EXPECT_EQ(NearestDivisors(1, 2), "1");
}

TEST(NearestTest, Multiples) {
  EXPECT_EQ(NearestMultiples(4, 10), "8 or 12");
  EXPECT_EQ(NearestMultiples(4, 11), "12 or 8");
  EXPECT_EQ(NearestMultiples(16, 5), "16");
}

}  // namespace
}  // namespace planc
