#include "runtime/data/permutation.h"

#include <cstdint>
#include <set>
#include <vector>

#include "gtest/gtest.h"

namespace planc {
namespace {

TEST(PermutationTest, EveryIndexOnce) {
  for (const int64_t size : {1, 2, 3, 4, 5, 7, 8, 9, 63, 64, 65, 1000, 4097}) {
    for (const uint64_t epoch : {0u, 1u, 77u}) {
      std::set<int64_t> seen;
      for (int64_t i = 0; i < size; ++i) seen.insert(PermutedIndex(i, size, 1234, epoch));
      EXPECT_EQ(static_cast<int64_t>(seen.size()), size);
      EXPECT_EQ(*seen.begin(), 0);
      EXPECT_EQ(*seen.rbegin(), size - 1);
    }
  }
}

TEST(PermutationTest, SeedAndEpochChangeTheOrder) {
  const auto order = [](uint64_t seed, uint64_t epoch) {
    std::vector<int64_t> result;
    for (int64_t i = 0; i < 1000; ++i) result.push_back(PermutedIndex(i, 1000, seed, epoch));
    return result;
  };
  EXPECT_EQ(order(1, 0), order(1, 0));
  EXPECT_NE(order(1, 0), order(2, 0));
  EXPECT_NE(order(1, 0), order(1, 1));
  EXPECT_NE(order(1, 2), order(2, 1));
}

// A shuffle has about one fixed point and about n/2 descents; a weak mixer has many or few.
TEST(PermutationTest, LooksRandom) {
  constexpr int64_t kSize = 20000;
  int64_t fixed = 0;
  int64_t descents = 0;
  int64_t previous = PermutedIndex(0, kSize, 9, 0);
  for (int64_t i = 1; i < kSize; ++i) {
    const int64_t value = PermutedIndex(i, kSize, 9, 0);
    fixed += static_cast<int64_t>(value == i);
    descents += static_cast<int64_t>(value < previous);
    previous = value;
  }
  EXPECT_LT(fixed, 10);
  // The deviation of the number of descents of a random permutation is sqrt((n + 1) / 12) = 41.
  EXPECT_NEAR(static_cast<double>(descents), kSize / 2.0, 6 * 41);
}

TEST(PermutationTest, LargeDomain) {
  constexpr int64_t kSize = (int64_t{1} << 45) + 12345;
  std::set<int64_t> seen;
  for (int64_t i = 0; i < 1000; ++i) {
    const int64_t value = PermutedIndex(kSize - 1 - i, kSize, 5, 3);
    EXPECT_GE(value, 0);
    EXPECT_LT(value, kSize);
    seen.insert(value);
  }
  EXPECT_EQ(seen.size(), 1000u);
}

}  // namespace
}  // namespace planc
