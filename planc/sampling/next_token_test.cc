#include "planc/sampling/next_token.h"

#include <cmath>
#include <cstdint>
#include <set>
#include <vector>

#include "gtest/gtest.h"

namespace planc {
namespace {

const std::vector<float> kLogits = {0.0f, 2.0f, 1.0f, 2.0f, -30.0f};

int32_t Next(const SamplingOptions& options, int64_t position) {
  return NextToken(kLogits.data(), static_cast<int64_t>(kLogits.size()), options, position);
}

TEST(NextTokenTest, ZeroTemperatureTakesTheMostLikely) {
  for (int64_t position = 0; position < 20; ++position) {
    EXPECT_EQ(Next({.temperature = 0, .top_k = 0, .seed = 3}, position), 1);
  }
}

TEST(NextTokenTest, TopKLimitsTheChoice) {
  std::set<int32_t> seen;
  for (int64_t position = 0; position < 500; ++position) {
    seen.insert(Next({.temperature = 5, .top_k = 3, .seed = 3}, position));
  }
  EXPECT_EQ(seen, (std::set<int32_t>{1, 2, 3}));
}

TEST(NextTokenTest, FollowsTheSoftmax) {
  constexpr int kDraws = 20000;
  const double temperature = 0.7;
  std::vector<double> counts(kLogits.size());
  for (int64_t position = 0; position < kDraws; ++position) {
    ++counts[static_cast<size_t>(
        Next({.temperature = temperature, .top_k = 0, .seed = 11}, position))];
  }
  double total = 0;
  for (const float logit : kLogits) total += std::exp(logit / temperature);
  for (size_t i = 0; i < kLogits.size(); ++i) {
    const double p = std::exp(kLogits[i] / temperature) / total;
    const double deviation = std::sqrt(kDraws * p * (1 - p));
    EXPECT_NEAR(counts[i], kDraws * p, 5 * deviation + 1) << "token " << i;
  }
}

TEST(NextTokenTest, SameSeedSameText) {
  EXPECT_EQ(UniformAt(1, 5), UniformAt(1, 5));
  EXPECT_NE(UniformAt(1, 5), UniformAt(2, 5));
  EXPECT_NE(UniformAt(1, 5), UniformAt(1, 6));
  for (int64_t i = 0; i < 1000; ++i) {
    EXPECT_GE(UniformAt(9, i), 0.0);
    EXPECT_LT(UniformAt(9, i), 1.0);
  }
}

}  // namespace
}  // namespace planc
