#include "kernels/cross_entropy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/reference_cross_entropy.h"
#include "kernels/test_data.h"

namespace planc::host {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The loss of logits [tokens, vocab] on `ranks` vocabulary-parallel ranks of `columns` columns
// each; what the collectives do between the three parts is done here in plain code.
struct ParallelLoss {
  ParallelLoss(DType dtype, const Operand& logits, const std::vector<int32_t>& targets,
               int64_t vocab, int64_t columns, int64_t ranks, float scale, int threads);

  std::vector<double> dlogits;  // [tokens, vocab]
  std::vector<double> padding;  // gradients of the masked columns
  Operand maximum;
  Operand pair;
  float loss = 0;
};

Operand Shard(const Operand& logits, int64_t tokens, int64_t vocab, int64_t begin,
              int64_t columns) {
  // Padding columns hold a value that would win every maximum.
  std::vector<double> values(tokens * columns, 1e30);
  const std::vector<double> whole = logits.Values();
  for (int64_t t = 0; t < tokens; ++t) {
    for (int64_t j = 0; j < columns && begin + j < vocab; ++j) {
      values[t * columns + j] = whole[t * vocab + begin + j];
    }
  }
  return Operand(logits.dtype(), values);
}

ParallelLoss::ParallelLoss(DType dtype, const Operand& logits, const std::vector<int32_t>& targets,
                           int64_t vocab, int64_t columns, int64_t ranks, float scale, int threads)
    : dlogits(targets.size() * vocab),
      maximum(DType::kF32, std::vector<double>(targets.size(), -kInfinity)),
      pair(DType::kF32, 2 * targets.size()) {
  const int64_t tokens = static_cast<int64_t>(targets.size());
  TestContext context(threads);
  std::vector<Operand> shards;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    shards.push_back(Shard(logits, tokens, vocab, rank * columns, columns));
    const int64_t valid = std::clamp<int64_t>(vocab - rank * columns, 0, columns);
    Operand local(DType::kF32, tokens);
    LogitsMax({.tokens = tokens,
               .columns = columns,
               .valid_columns = valid,
               .logits = shards[rank].data(),
               .maximum = local.floats()},
              dtype, context.get());
    for (int64_t t = 0; t < tokens; ++t) {
      const float value = local.floats()[t];
      if (std::isnan(value) || value > maximum.floats()[t]) maximum.floats()[t] = value;
    }
  }
  for (int64_t rank = 0; rank < ranks; ++rank) {
    const int64_t valid = std::clamp<int64_t>(vocab - rank * columns, 0, columns);
    Operand local(DType::kF32, 2 * tokens);
    SumExp({.tokens = tokens,
            .columns = columns,
            .valid_columns = valid,
            .vocab_begin = rank * columns,
            .logits = shards[rank].data(),
            .maximum = maximum.floats(),
            .targets = targets.data(),
            .pair = local.floats()},
           dtype, context.get());
    for (int64_t i = 0; i < 2 * tokens; ++i) pair.floats()[i] += local.floats()[i];
  }
  for (int64_t rank = 0; rank < ranks; ++rank) {
    const int64_t valid = std::clamp<int64_t>(vocab - rank * columns, 0, columns);
    loss = 0;
    LossGrad({.tokens = tokens,
              .columns = columns,
              .valid_columns = valid,
              .vocab_begin = rank * columns,
              .scale = scale,
              .logits = shards[rank].data(),
              .maximum = maximum.floats(),
              .pair = pair.floats(),
              .targets = targets.data(),
              .dlogits = shards[rank].data(),
              .loss = &loss},
             dtype, context.get());
    const std::vector<double> local = shards[rank].Values();
    for (int64_t i = 0; i < tokens * columns; ++i) {
      const int64_t column = rank * columns + i % columns;
      if (column < vocab) {
        dlogits[i / columns * vocab + column] = local[i];
      } else {
        padding.push_back(local[i]);
      }
    }
  }
}

std::vector<int32_t> Targets(int64_t tokens, int64_t vocab) {
  std::vector<int32_t> targets(tokens);
  for (int64_t t = 0; t < tokens; ++t) targets[t] = static_cast<int32_t>((t * 37 + 5) % vocab);
  return targets;
}

struct Case {
  int64_t tokens;
  int64_t vocab;
  int64_t columns;  // per rank
  int64_t ranks;
};
// One rank, two with padding, and four of which the last holds padding only.
const Case kCases[] = {
    {5, 1, 1, 1}, {33, 50, 50, 1}, {17, 101, 64, 2}, {9, 90, 32, 4}, {3, 5000, 5000, 1}};

TEST(CrossEntropy, MatchesTheReferenceOnAnyNumberOfRanks) {
  for (DType dtype : ElementTypes()) {
    for (const Case& c : kCases) {
      SCOPED_TRACE(testing::Message() << DTypeName(dtype) << " " << c.vocab << "/" << c.columns);
      const float scale = 0.125f;
      const Operand logits = Operand::Random(dtype, c.tokens * c.vocab, 1, 4);
      const std::vector<int32_t> targets = Targets(c.tokens, c.vocab);
      const ParallelLoss actual(dtype, logits, targets, c.vocab, c.columns, c.ranks, scale, 2);
      const std::vector<double> values = logits.Values();
      std::vector<double> expected(c.tokens * c.vocab);
      double loss = 0;
      for (int64_t t = 0; t < c.tokens; ++t) {
        const double* row = &values[t * c.vocab];
        loss += scale * reference::CrossEntropyRow(row, c.vocab, targets[t]);
        reference::CrossEntropyRowBackward<double>(row, c.vocab, targets[t], scale,
                                                   &expected[t * c.vocab]);
      }
      EXPECT_NEAR(actual.loss, loss, 2e-6 * (1 + loss));
      const double tolerance = dtype == DType::kBF16 ? 1.0 / 256 : 2e-6;
      for (size_t i = 0; i < expected.size(); ++i) {
        ASSERT_NEAR(actual.dlogits[i], expected[i],
                    tolerance * std::fabs(expected[i]) + 1e-7 * scale)
            << i;
      }
      for (double value : actual.padding) EXPECT_EQ(value, 0);
    }
  }
}

TEST(CrossEntropy, LossAloneEqualsLossWithGradient) {
  const Operand logits = Operand::Random(DType::kF32, 20 * 30, 1, 4);
  std::vector<int32_t> targets = Targets(20, 30);
  ParallelLoss with(DType::kF32, logits, targets, 30, 30, 1, 0.05f, 1);
  float alone = 0;
  TestContext context;
  Loss({.tokens = 20,
        .scale = 0.05f,
        .maximum = with.maximum.floats(),
        .pair = with.pair.floats(),
        .targets = targets.data(),
        .loss = &alone},
       context.get());
  EXPECT_EQ(alone, with.loss);
  EXPECT_GT(alone, 0);
}

TEST(CrossEntropy, IgnoredTargetsAddNothing) {
  const Operand logits = Operand::Random(DType::kF32, 2 * 30, 1, 4);
  const ParallelLoss both(DType::kF32, logits, {kIgnoredTarget, 7}, 30, 30, 1, 1.0f, 1);
  for (int64_t j = 0; j < 30; ++j) EXPECT_EQ(both.dlogits[j], 0);
  const std::vector<double> values = logits.Values();
  EXPECT_NEAR(both.loss, reference::CrossEntropyRow(&values[30], 30, 7), 1e-5);
  EXPECT_NE(both.dlogits[30], 0);
}

TEST(CrossEntropy, LargeLogitsDoNotOverflow) {
  std::vector<double> values(40, -1e30);
  values[3] = 3e38;
  values[9] = 2.9e38;
  const Operand logits(DType::kF32, values);
  const ParallelLoss right(DType::kF32, logits, {3}, 40, 20, 2, 1.0f, 1);
  EXPECT_EQ(right.loss, 0);
  for (double gradient : right.dlogits) EXPECT_EQ(gradient, 0);
  const ParallelLoss wrong(DType::kF32, logits, {9}, 40, 20, 2, 1.0f, 1);
  EXPECT_NEAR(wrong.loss / 1e37, 1, 1e-5);
  EXPECT_EQ(wrong.dlogits[3], 1);
  EXPECT_EQ(wrong.dlogits[9], -1);
}

TEST(CrossEntropy, NonFiniteLogitsReachTheLoss) {
  for (double bad : {std::nan(""), kInfinity}) {
    std::vector<double> values = RandomValues(2 * 40, 1);
    values[37] = bad;
    const ParallelLoss actual(DType::kF32, Operand(DType::kF32, values), {3, 4}, 40, 20, 2, 1.0f,
                              1);
    EXPECT_TRUE(std::isnan(actual.loss)) << bad;
    EXPECT_TRUE(std::isfinite(actual.dlogits[40])) << "the other row";
  }
  // A logit of -infinity is a probability of zero.
  std::vector<double> values = RandomValues(40, 1);
  values[37] = -kInfinity;
  const ParallelLoss actual(DType::kF32, Operand(DType::kF32, values), {3}, 40, 20, 2, 1.0f, 1);
  EXPECT_TRUE(std::isfinite(actual.loss));
  EXPECT_EQ(actual.dlogits[37], 0);
}

TEST(CrossEntropy, BitsDoNotDependOnThreads) {
  const Operand logits = Operand::Random(DType::kBF16, 64 * 1000, 1, 4);
  const std::vector<int32_t> targets = Targets(64, 1000);
  const ParallelLoss one(DType::kBF16, logits, targets, 1000, 1000, 1, 1.0f, 1);
  const ParallelLoss three(DType::kBF16, logits, targets, 1000, 1000, 1, 1.0f, 3);
  EXPECT_EQ(one.dlogits, three.dlogits);
  EXPECT_EQ(one.pair.bytes(), three.pair.bytes());
  EXPECT_EQ(one.loss, three.loss);
}

TEST(CrossEntropy, ReferenceGradientIsTheDerivative) {
  const std::vector<double> logits = RandomValues(12, 1, 2);
  std::vector<double> gradient(12);
  reference::CrossEntropyRowBackward(logits.data(), 12, 5, 0.3, gradient.data());
  const auto loss = [](const std::vector<double>& at) {
    return 0.3 * reference::CrossEntropyRow(at.data(), 12, 5);
  };
  ExpectGradient(loss, logits, gradient, "dlogits");
}

}  // namespace
}  // namespace planc::host
