#include "kernels/philox.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace planc::host {
namespace {

// The known-answer vectors published with Random123 for Philox4x32-10.
TEST(Philox, ReproducesTheKnownAnswers) {
  using Words = std::array<uint32_t, 4>;
  EXPECT_EQ(Philox4x32({0, 0, 0, 0}, {0, 0}),
            (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(Philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Normal, IsBoxMullerOfThePhiloxWords) {
  const PhiloxKey key = {0x123456789abcdef0u, 0xfedcba9876543210u};
  const uint64_t group = (uint64_t{1} << 40) + 77;
  const auto words =
      Philox4x32({77, 1u << 8, 0x76543210u, 0xfedcba98u}, {0x9abcdef0u, 0x12345678u});
  for (int pair = 0; pair < 2; ++pair) {
    const double u = (words[2 * pair] + 0.5) / 4294967296.0;
    const double angle = 2 * std::acos(-1.0) * (words[2 * pair + 1] + 0.5) / 4294967296.0;
    const double radius = std::sqrt(-2 * std::log(u));
    EXPECT_FLOAT_EQ(NormalAt(key, 4 * group + 2 * pair), radius * std::cos(angle));
    EXPECT_FLOAT_EQ(NormalAt(key, 4 * group + 2 * pair + 1), radius * std::sin(angle));
  }
}

TEST(Normal, FillEqualsAtForEveryAlignment) {
  const PhiloxKey key = MakePhiloxKey(1234, "layers.0.attention.qkv.weight");
  for (uint64_t first : {uint64_t{0}, uint64_t{1}, uint64_t{6}, (uint64_t{1} << 35) + 3}) {
    for (int64_t count : {0, 1, 3, 4, 9, 1001}) {
      std::vector<float> values(count + 1, 42.0f);
      FillNormal(key, first, count, 0.02f, values.data());
      for (int64_t i = 0; i < count; ++i) {
        ASSERT_EQ(values[i], 0.02f * NormalAt(key, first + i)) << first << " + " << i;
      }
      EXPECT_EQ(values[count], 42.0f);
    }
  }
}

// Pins the initial weights: a change of this test changes every training run.
TEST(Normal, KeepsItsValues) {
  const PhiloxKey key = MakePhiloxKey(1234, "embedding.weight");
  EXPECT_EQ(key.parameter_hash, 6182153290986747414u);
  const float expected[] = {-1.90906863f, 0.0100770986f, -1.12634107f, -0.929890785f};
  for (uint64_t i = 0; i < 4; ++i) EXPECT_FLOAT_EQ(NormalAt(key, 1000003 + i), expected[i]);
}

TEST(Normal, HasTheMomentsOfANormalDistribution) {
  constexpr int64_t kCount = 1 << 20;
  std::vector<float> values(kCount);
  FillNormal(MakePhiloxKey(7, "a"), 0, kCount, 1.0f, values.data());
  double sum = 0, squares = 0, fourth = 0, neighbours = 0;
  for (int64_t i = 0; i < kCount; ++i) {
    const double x = values[i];
    sum += x;
    squares += x * x;
    fourth += x * x * x * x;
    if (i > 0) neighbours += x * values[i - 1];
  }
  // Five standard errors each.
  EXPECT_NEAR(sum / kCount, 0, 5 / 1024.0);
  EXPECT_NEAR(squares / kCount, 1, 5 * std::sqrt(2.0) / 1024);
  EXPECT_NEAR(fourth / kCount, 3, 5 * std::sqrt(96.0) / 1024);
  EXPECT_NEAR(neighbours / kCount, 0, 5 / 1024.0);
}

TEST(Normal, DependsOnSeedAndName) {
  const float value = NormalAt(MakePhiloxKey(1, "a"), 0);
  EXPECT_NE(value, NormalAt(MakePhiloxKey(2, "a"), 0));
  EXPECT_NE(value, NormalAt(MakePhiloxKey(1, "b"), 0));
  EXPECT_NE(value, NormalAt(MakePhiloxKey(uint64_t{1} << 32 | 1, "a"), 0));
  EXPECT_EQ(value, NormalAt(MakePhiloxKey(1, "a"), 0));
}

}  // namespace
}  // namespace planc::host
