#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/cross_entropy.h"
#include "kernels/property_test.h"
#include "kernels/tested_instruction_set.h"

namespace planc::host {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// One rank's shard of the logits of some rows.
struct CrossEntropyProblem {
  explicit CrossEntropyProblem(RandomCase& random)
      : columns(random.Size(300)),
        tokens(random.Chance(0.0625) ? 3 * 16384 / columns + 3 : random.Size(40)),
        valid_columns(random.Chance(0.7) ? columns : random.Between(0, columns)),
        vocab_begin(random.Chance(0.5) ? 0 : random.Between(1, 1000)),
        dtype(random.ElementType()),
        scale(static_cast<float>(1.0 / static_cast<double>(tokens))),
        logits(random.Matrix(dtype, tokens, columns, random.Kind())),
        maximum(DType::kF32, tokens, 1),
        pair(DType::kF32, tokens, 2),
        dlogits(random.Matrix(dtype, tokens, columns, ValueKind::kNormal)),
        loss(random.Vector(DType::kF32, 1, ValueKind::kNormal)) {
    for (int64_t t = 0; t < tokens; ++t) {
      // Mostly ids of this shard, its padding included; some of other shards, some ignored.
      const int64_t local = random.Between(-3, columns + 2);
      const int64_t target = std::max<int64_t>(0, vocab_begin + local);
      targets.push_back(random.Chance(0.1) ? kIgnoredTarget : static_cast<int32_t>(target));
    }
    if (random.Chance(0.3)) {
      for (int64_t i = 0; i < tokens * columns / 3; ++i) {
        logits.Set(random.Between(0, tokens - 1), random.Between(0, columns - 1), -kInfinity);
      }
    }
  }

  void Max(KernelContext& context) {
    LogitsMax({.tokens = tokens,
               .columns = columns,
               .valid_columns = valid_columns,
               .logits = logits.data(),
               .maximum = maximum.floats()},
              dtype, context);
  }
  void Sum(KernelContext& context) {
    SumExp({.tokens = tokens,
            .columns = columns,
            .valid_columns = valid_columns,
            .vocab_begin = vocab_begin,
            .logits = logits.data(),
            .maximum = maximum.floats(),
            .targets = targets.data(),
            .pair = pair.floats()},
           dtype, context);
  }
  void Gradient(void* to, KernelContext& context) {
    LossGrad({.tokens = tokens,
              .columns = columns,
              .valid_columns = valid_columns,
              .vocab_begin = vocab_begin,
              .scale = scale,
              .logits = logits.data(),
              .maximum = maximum.floats(),
              .pair = pair.floats(),
              .targets = targets.data(),
              .dlogits = to,
              .loss = loss.floats()},
             dtype, context);
  }

  bool IsTarget(int64_t row, int64_t column) const {
    return targets[row] != kIgnoredTarget && targets[row] - vocab_begin == column &&
           column < valid_columns;
  }
  // exp(logit - maximum), whose argument fp32 rounds once.
  Bounded Term(int64_t row, int64_t column) const {
    return exp(Bounded(static_cast<float>(logits.At(row, column)) -
                       static_cast<float>(maximum.At(row, 0))));
  }

  void CheckMaximum() const {
    std::vector<float> expected;
    for (int64_t t = 0; t < tokens; ++t) {
      double largest = -kInfinity;
      bool has_nan = false;
      for (int64_t i = 0; i < valid_columns; ++i) {
        largest = std::max(largest, logits.At(t, i));
        has_nan = has_nan || std::isnan(logits.At(t, i));
      }
      expected.push_back(has_nan ? std::numeric_limits<float>::quiet_NaN()
                                 : static_cast<float>(largest));
      // Zeros of either sign are equal; which one is found does not matter.
      if (largest == 0 && maximum.At(t, 0) == 0) expected.back() = maximum.At(t, 0);
    }
    ExpectEquals(maximum, expected, "maximum");
  }
  void CheckPair() const {
    std::vector<Bounded> expected;
    for (int64_t t = 0; t < tokens; ++t) {
      Bounded sum, target;
      for (int64_t i = 0; i < valid_columns; ++i) {
        sum += Term(t, i);
        if (IsTarget(t, i)) target = logits.At(t, i);
      }
      expected.push_back(sum);
      expected.push_back(target);
    }
    ExpectAgrees(pair, expected, "pair");
  }
  void CheckGradient(const StridedOperand& gradient) const {
    std::vector<Bounded> expected(tokens * columns);
    for (int64_t t = 0; t < tokens; ++t) {
      if (targets[t] == kIgnoredTarget) continue;
      for (int64_t i = 0; i < valid_columns; ++i) {
        const Bounded probability = Term(t, i) / Bounded(pair.At(t, 0));
        expected[t * columns + i] =
            Bounded(scale) * (IsTarget(t, i) ? probability - 1 : probability);
      }
    }
    ExpectAgrees(gradient, expected, "dlogits");
  }
  void CheckLoss(double before) const {
    double sum = 0, magnitude = 0;
    for (int64_t t = 0; t < tokens; ++t) {
      if (targets[t] == kIgnoredTarget) continue;
      const double log_sum = std::log(pair.At(t, 0));
      sum += log_sum + maximum.At(t, 0) - pair.At(t, 1);
      magnitude += std::fabs(log_sum) + std::fabs(maximum.At(t, 0)) + std::fabs(pair.At(t, 1));
    }
    // The sum over rows is in double; scaling it and adding it to the loss round to float.
    const double share = sum * scale;
    const double error = magnitude * scale * static_cast<double>(tokens) * 0x1p-52 +
                         0x1p-23 * (std::fabs(share) + std::fabs(before));
    ExpectAgrees(loss, {Bounded(before + share, error)}, "loss");
  }

  int64_t columns, tokens, valid_columns, vocab_begin;
  DType dtype;
  float scale;
  StridedOperand logits, maximum, pair, dlogits, loss;
  std::vector<int32_t> targets;
};

TEST(CrossEntropyProperty, AgreesWithTheReference) {
  ForEachCase(1, 500, [](RandomCase& random) {
    CrossEntropyProblem p(random);
    ExpectReproducible({&p.maximum}, [&](KernelContext& context) { p.Max(context); });
    p.CheckMaximum();
    // Another shard may hold a larger logit.
    for (int64_t t = 0; t < p.tokens; ++t) {
      if (p.vocab_begin > 0) p.maximum.Set(t, 0, p.maximum.At(t, 0) + random.Between(0, 3));
      if (p.valid_columns == 0) p.maximum.Set(t, 0, 1);
    }
    ExpectReproducible({&p.pair}, [&](KernelContext& context) { p.Sum(context); });
    p.CheckPair();
    for (int64_t t = 0; t < p.tokens; ++t) {
      if (p.vocab_begin > 0) p.pair.Set(t, 0, p.pair.At(t, 0) + 0.5);
    }
    const double before = p.loss.At(0, 0);
    ExpectReproducible({&p.dlogits, &p.loss},
                       [&](KernelContext& context) { p.Gradient(p.dlogits.data(), context); });
    p.CheckGradient(p.dlogits);
    p.CheckLoss(before);
    const std::vector<double> values = p.dlogits.Values();
    StridedOperand over_logits = p.logits;
    ExpectReproducible({&p.logits},
                       [&](KernelContext& context) { p.Gradient(p.logits.data(), context); });
    ExpectEquals(p.logits, std::vector<float>(values.begin(), values.end()), "in place");
  });
}

// Loss and gradient of one row of an unsharded vocabulary.
struct OneRow {
  explicit OneRow(const std::vector<double>& logits, int32_t target)
      : row(DType::kF32, 1, static_cast<int64_t>(logits.size())),
        dlogits(row),
        loss(DType::kF32, 1, 1) {
    for (size_t i = 0; i < logits.size(); ++i) row.Set(0, static_cast<int64_t>(i), logits[i]);
    StridedOperand maximum(DType::kF32, 1, 1), pair(DType::kF32, 1, 2);
    KernelContext context{nullptr, 0, 1, TestedInstructionSet()};
    const int64_t n = row.columns();
    LogitsMax({1, n, n, row.data(), maximum.floats()}, DType::kF32, context);
    SumExp({1, n, n, 0, row.data(), maximum.floats(), &target, pair.floats()}, DType::kF32,
           context);
    LossGrad({1, n, n, 0, 1.0f, row.data(), maximum.floats(), pair.floats(), &target,
              dlogits.data(), loss.floats()},
             DType::kF32, context);
  }
  double Loss() const { return loss.At(0, 0); }
  double Gradient(int64_t column) const { return dlogits.At(0, column); }

  StridedOperand row, dlogits, loss;
};

TEST(CrossEntropyProperty, ExtremeLogits) {
  for (double value : {0.0, 1e30, -1e30, 3e38, -3e38, 1e-42}) {
    for (int64_t n : {1, 7, 33, 100}) {
      const OneRow row(std::vector<double>(n, value), 0);
      // The maximum and the target cancel in double.
      EXPECT_NEAR(row.Loss(), std::log(static_cast<double>(n)), 1e-6) << value;
      for (int64_t i = 0; i < n; ++i) {
        EXPECT_NEAR(row.Gradient(i), 1.0 / static_cast<double>(n) - (i == 0 ? 1 : 0), 1e-6);
      }
    }
  }
  const OneRow saturated({-3e38, 3e38, 0}, 0);
  EXPECT_EQ(saturated.Loss(), kInfinity);
  EXPECT_EQ(saturated.Gradient(0), -1);
  EXPECT_EQ(saturated.Gradient(1), 1);
  EXPECT_EQ(saturated.Gradient(2), 0);
  const OneRow masked({-kInfinity, 2, -kInfinity, 2}, 1);
  EXPECT_NEAR(masked.Loss(), std::log(2.0), 1e-6);
  EXPECT_EQ(masked.Gradient(0), 0);
  EXPECT_NEAR(masked.Gradient(1), -0.5, 1e-6);
  EXPECT_EQ(OneRow({-kInfinity, 1}, 0).Loss(), kInfinity);
  // Probabilities below the smallest normal number are denormals, not zero.
  const OneRow tiny({0, -100}, 0);
  EXPECT_NEAR(tiny.Gradient(1) / std::exp(-100.0), 1, 0.02);
}

TEST(CrossEntropyProperty, NansStayVisible) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  for (int64_t n : {1, 5, 32, 77}) {
    for (int64_t at : {int64_t{0}, n / 2, n - 1}) {
      for (double value : {kNan, kInfinity}) {
        std::vector<double> logits(n, 1.0);
        logits[at] = value;
        const OneRow row(logits, 0);
        EXPECT_TRUE(std::isnan(row.Loss())) << n << " columns, " << value << " at " << at;
        EXPECT_TRUE(std::isnan(row.Gradient(at)));
      }
      EXPECT_TRUE(std::isnan(OneRow(std::vector<double>(n, -kInfinity), 0).Loss()));
    }
  }
}

}  // namespace
}  // namespace planc::host
