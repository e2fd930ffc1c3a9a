#include "kernels/norm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kernels/reference_norm.h"
#include "kernels/test_data.h"

namespace planc::host {
namespace {

constexpr float kEpsilon = 1e-5f;

struct Shape {
  int64_t tokens;
  int64_t hidden;
};
// Odd sizes around the vector widths, and enough rows for several blocks of the weight gradient.
const Shape kShapes[] = {{1, 3}, {2, 7}, {3, 32}, {70, 65}, {5, 1000}, {2100, 24}};

TEST(RmsNorm, MatchesTheReference) {
  for (DType dtype : ElementTypes()) {
    for (const auto [tokens, hidden] : kShapes) {
      SCOPED_TRACE(testing::Message() << DTypeName(dtype) << " " << tokens << " x " << hidden);
      const Operand x = Operand::Random(dtype, tokens * hidden, 1, 3);
      const Operand weight = Operand::Random(dtype, hidden, 2);
      const Operand dy = Operand::Random(dtype, tokens * hidden, 3);
      Operand y(dtype, tokens * hidden);
      Operand rstd(DType::kF32, tokens);
      TestContext context(2, RmsNormBackwardWorkspaceBytes(tokens, hidden));
      RmsNormForward({.tokens = tokens,
                      .hidden = hidden,
                      .epsilon = kEpsilon,
                      .x = x.data(),
                      .weight = weight.data(),
                      .y = y.data(),
                      .rstd = rstd.floats()},
                     dtype, context.get());
      Operand dx = Operand::Random(dtype, tokens * hidden, 4);
      Operand dweight = Operand::Random(DType::kF32, hidden, 5);
      std::vector<double> dweight_expected = dweight.Values();
      Operand dx_sum = dx;
      RmsNormBackwardArgs backward = {.tokens = tokens,
                                      .hidden = hidden,
                                      .dy = dy.data(),
                                      .x = x.data(),
                                      .weight = weight.data(),
                                      .rstd = rstd.floats(),
                                      .dx = dx.data(),
                                      .dweight = dweight.data()};
      RmsNormBackward(backward, dtype, context.get());

      const std::vector<double> xs = x.Values(), weights = weight.Values(), dys = dy.Values();
      std::vector<double> y_expected(tokens * hidden), rstd_expected(tokens);
      std::vector<double> dx_expected(tokens * hidden);
      for (int64_t t = 0; t < tokens; ++t) {
        const int64_t at = t * hidden;
        rstd_expected[t] = reference::RmsNormRow<double>(&xs[at], weights.data(), hidden, kEpsilon,
                                                         &y_expected[at]);
        reference::RmsNormRowBackward<double>(&dys[at], &xs[at], weights.data(), hidden,
                                              rstd_expected[t], &dx_expected[at],
                                              dweight_expected.data());
      }
      ExpectClose(y, y_expected, "y");
      ExpectClose(rstd, rstd_expected, "rstd");
      ExpectClose(dx, dx_expected, "dx", 32);
      ExpectClose(dweight, dweight_expected, "dweight", 64);

      std::vector<double> dx_sum_expected = dx_sum.Values();
      for (size_t i = 0; i < dx_expected.size(); ++i) dx_sum_expected[i] += dx_expected[i];
      backward.dx = dx_sum.data();
      backward.accumulate_dx = true;
      RmsNormBackward(backward, dtype, context.get());
      ExpectClose(dx_sum, dx_sum_expected, "accumulated dx", 32);
    }
  }
}

TEST(LayerNorm, MatchesTheReference) {
  for (DType dtype : ElementTypes()) {
    for (const auto [tokens, hidden] : kShapes) {
      SCOPED_TRACE(testing::Message() << DTypeName(dtype) << " " << tokens << " x " << hidden);
      const Operand x = Operand::Random(dtype, tokens * hidden, 1, 3);
      const Operand weight = Operand::Random(dtype, hidden, 2);
      const Operand bias = Operand::Random(dtype, hidden, 6);
      const Operand dy = Operand::Random(dtype, tokens * hidden, 3);
      Operand y(dtype, tokens * hidden);
      Operand mean(DType::kF32, tokens), rstd(DType::kF32, tokens);
      TestContext context(2, LayerNormBackwardWorkspaceBytes(tokens, hidden));
      LayerNormForward({.tokens = tokens,
                        .hidden = hidden,
                        .epsilon = kEpsilon,
                        .x = x.data(),
                        .weight = weight.data(),
                        .bias = bias.data(),
                        .y = y.data(),
                        .mean = mean.floats(),
                        .rstd = rstd.floats()},
                       dtype, context.get());
      Operand dx = Operand::Random(dtype, tokens * hidden, 4);
      const std::vector<double> dx_before = dx.Values();
      Operand dweight = Operand::Random(DType::kBF16, hidden, 5);
      Operand dbias = Operand::Random(DType::kBF16, hidden, 7);
      std::vector<double> dweight_expected = dweight.Values();
      std::vector<double> dbias_expected = dbias.Values();
      LayerNormBackward({.tokens = tokens,
                         .hidden = hidden,
                         .dy = dy.data(),
                         .x = x.data(),
                         .weight = weight.data(),
                         .mean = mean.floats(),
                         .rstd = rstd.floats(),
                         .dx = dx.data(),
                         .accumulate_dx = true,
                         .dweight = dweight.data(),
                         .dbias = dbias.data(),
                         .dweight_dtype = DType::kBF16},
                        dtype, context.get());

      const std::vector<double> xs = x.Values(), weights = weight.Values(), dys = dy.Values();
      const std::vector<double> biases = bias.Values();
      std::vector<double> y_expected(tokens * hidden), dx_expected(tokens * hidden);
      std::vector<double> mean_expected(tokens), rstd_expected(tokens);
      for (int64_t t = 0; t < tokens; ++t) {
        const int64_t at = t * hidden;
        reference::LayerNormRow<double>(&xs[at], weights.data(), biases.data(), hidden, kEpsilon,
                                        &y_expected[at], &mean_expected[t], &rstd_expected[t]);
        reference::LayerNormRowBackward<double>(
            &dys[at], &xs[at], weights.data(), hidden, mean_expected[t], rstd_expected[t],
            &dx_expected[at], dweight_expected.data(), dbias_expected.data());
      }
      for (size_t i = 0; i < dx_expected.size(); ++i) dx_expected[i] += dx_before[i];
      ExpectClose(y, y_expected, "y", 32);
      ExpectClose(mean, mean_expected, "mean", 32);
      ExpectClose(rstd, rstd_expected, "rstd", 32);
      ExpectClose(dx, dx_expected, "dx", 64);
      ExpectClose(dweight, dweight_expected, "dweight", 64);
      ExpectClose(dbias, dbias_expected, "dbias", 64);
    }
  }
}

// qkv rows of 2 query heads, 1 key head and 1 value head of 10: the key head is normalized into a
// buffer with rows of another length.
TEST(HeadNorm, NormalizesASliceOfColumnsAndNothingElse) {
  constexpr int64_t kTokens = 37, kHeads = 2, kDim = 10, kStride = 43, kColumn = 3, kOut = 21;
  for (DType dtype : ElementTypes()) {
    const Operand x = Operand::Random(dtype, kTokens * kStride, 1);
    const Operand weight = Operand::Random(dtype, kDim, 2);
    const Operand dy = Operand::Random(dtype, kTokens * kOut, 3);
    Operand y(dtype, kTokens * kOut);
    Operand rstd(DType::kF32, kTokens * kHeads);
    Operand dx(dtype, kTokens * kStride);
    Operand dweight(DType::kF32, kDim);
    TestContext context(2, HeadNormBackwardWorkspaceBytes(kTokens, kHeads, kDim));
    HeadNormForward({.tokens = kTokens,
                     .heads = kHeads,
                     .head_dim = kDim,
                     .epsilon = kEpsilon,
                     .x = x.data(),
                     .x_stride = kStride,
                     .x_column = kColumn,
                     .weight = weight.data(),
                     .y = y.data(),
                     .y_stride = kOut,
                     .y_column = 1,
                     .rstd = rstd.floats()},
                    dtype, context.get());
    HeadNormBackward({.tokens = kTokens,
                      .heads = kHeads,
                      .head_dim = kDim,
                      .dy = dy.data(),
                      .dy_stride = kOut,
                      .dy_column = 1,
                      .x = x.data(),
                      .x_stride = kStride,
                      .x_column = kColumn,
                      .weight = weight.data(),
                      .rstd = rstd.floats(),
                      .dx = dx.data(),
                      .dx_stride = kStride,
                      .dx_column = kColumn,
                      .dweight = dweight.data()},
                     dtype, context.get());
    const std::vector<double> xs = x.Values(), weights = weight.Values(), dys = dy.Values();
    std::vector<double> y_expected(kTokens * kOut), dx_expected(kTokens * kStride);
    std::vector<double> rstd_expected(kTokens * kHeads), dweight_expected(kDim);
    for (int64_t t = 0; t < kTokens; ++t) {
      for (int64_t head = 0; head < kHeads; ++head) {
        const int64_t in = t * kStride + kColumn + head * kDim;
        const int64_t out = t * kOut + 1 + head * kDim;
        const double row_rstd = reference::RmsNormRow<double>(&xs[in], weights.data(), kDim,
                                                              kEpsilon, &y_expected[out]);
        rstd_expected[t * kHeads + head] = row_rstd;
        reference::RmsNormRowBackward<double>(&dys[out], &xs[in], weights.data(), kDim, row_rstd,
                                              &dx_expected[in], dweight_expected.data());
      }
    }
    ExpectClose(y, y_expected, "y");
    ExpectClose(rstd, rstd_expected, "rstd");
    ExpectClose(dx, dx_expected, "dx", 32);
    ExpectClose(dweight, dweight_expected, "dweight", 64);
  }
}

TEST(RmsNorm, ReferenceGradientsAreDerivatives) {
  constexpr int64_t kHidden = 9;
  const std::vector<double> x = RandomValues(kHidden, 1), weight = RandomValues(kHidden, 2);
  const std::vector<double> dy = RandomValues(kHidden, 3);
  std::vector<double> y(kHidden), dx(kHidden), dweight(kHidden);
  const double rstd = reference::RmsNormRow(x.data(), weight.data(), kHidden, 1e-5, y.data());
  reference::RmsNormRowBackward(dy.data(), x.data(), weight.data(), kHidden, rstd, dx.data(),
                                dweight.data());
  const auto loss = [&](const std::vector<double>& at_x, const std::vector<double>& at_weight) {
    std::vector<double> out(kHidden);
    reference::RmsNormRow(at_x.data(), at_weight.data(), kHidden, 1e-5, out.data());
    return Dot(out, dy);
  };
  ExpectGradient([&](const auto& at) { return loss(at, weight); }, x, dx, "dx");
  ExpectGradient([&](const auto& at) { return loss(x, at); }, weight, dweight, "dweight");
}

TEST(LayerNorm, ReferenceGradientsAreDerivatives) {
  constexpr int64_t kHidden = 9;
  const std::vector<double> x = RandomValues(kHidden, 1), weight = RandomValues(kHidden, 2);
  const std::vector<double> bias = RandomValues(kHidden, 4), dy = RandomValues(kHidden, 3);
  std::vector<double> y(kHidden), dx(kHidden), dweight(kHidden), dbias(kHidden);
  double mean = 0, rstd = 0;
  reference::LayerNormRow(x.data(), weight.data(), bias.data(), kHidden, 1e-5, y.data(), &mean,
                          &rstd);
  reference::LayerNormRowBackward(dy.data(), x.data(), weight.data(), kHidden, mean, rstd,
                                  dx.data(), dweight.data(), dbias.data());
  const auto loss = [&](const std::vector<double>& at_x, const std::vector<double>& at_weight,
                        const std::vector<double>& at_bias) {
    std::vector<double> out(kHidden);
    double m = 0, r = 0;
    reference::LayerNormRow(at_x.data(), at_weight.data(), at_bias.data(), kHidden, 1e-5,
                            out.data(), &m, &r);
    return Dot(out, dy);
  };
  ExpectGradient([&](const auto& at) { return loss(at, weight, bias); }, x, dx, "dx");
  ExpectGradient([&](const auto& at) { return loss(x, at, bias); }, weight, dweight, "dweight");
  ExpectGradient([&](const auto& at) { return loss(x, weight, at); }, bias, dbias, "dbias");
}

TEST(RmsNorm, BitsDoNotDependOnThreads) {
  constexpr int64_t kTokens = 700, kHidden = 130;
  const Operand x = Operand::Random(DType::kF32, kTokens * kHidden, 1);
  const Operand weight = Operand::Random(DType::kF32, kHidden, 2);
  const Operand rstd = Operand::Random(DType::kF32, kTokens, 3);
  std::vector<uint8_t> dx_bytes, dweight_bytes;
  for (int threads : {1, 2, 5}) {
    Operand dx(DType::kF32, kTokens * kHidden), dweight(DType::kF32, kHidden);
    TestContext context(threads, RmsNormBackwardWorkspaceBytes(kTokens, kHidden));
    RmsNormBackward({.tokens = kTokens,
                     .hidden = kHidden,
                     .dy = x.data(),
                     .x = x.data(),
                     .weight = weight.data(),
                     .rstd = static_cast<const float*>(rstd.data()),
                     .dx = dx.data(),
                     .dweight = dweight.data()},
                    DType::kF32, context.get());
    if (threads == 1) dx_bytes = dx.bytes(), dweight_bytes = dweight.bytes();
    EXPECT_EQ(dx.bytes(), dx_bytes) << threads << " threads";
    EXPECT_EQ(dweight.bytes(), dweight_bytes) << threads << " threads";
  }
}

TEST(RmsNorm, WorksInPlace) {
  const Operand x = Operand::Random(DType::kBF16, 3 * 40, 1);
  const Operand weight = Operand::Random(DType::kBF16, 40, 2);
  Operand rstd(DType::kF32, 3), y(DType::kBF16, 3 * 40), in_place = x;
  TestContext context;
  RmsNormForwardArgs args = {.tokens = 3,
                             .hidden = 40,
                             .epsilon = kEpsilon,
                             .x = x.data(),
                             .weight = weight.data(),
                             .y = y.data(),
                             .rstd = rstd.floats()};
  RmsNormForward(args, DType::kBF16, context.get());
  args.x = args.y = in_place.data();
  RmsNormForward(args, DType::kBF16, context.get());
  EXPECT_EQ(in_place.bytes(), y.bytes());
}

TEST(Norms, PropagateNonFiniteValuesWithinTheirRow) {
  constexpr int64_t kHidden = 19;
  for (double bad : {std::numeric_limits<double>::infinity(), std::nan("")}) {
    std::vector<double> values = RandomValues(2 * kHidden, 1);
    values[kHidden - 1] = bad;
    const Operand x(DType::kF32, values);
    const Operand ones(DType::kF32, std::vector<double>(kHidden, 1.0));
    Operand y(DType::kF32, 2 * kHidden), mean(DType::kF32, 2), rstd(DType::kF32, 2);
    TestContext context;
    RmsNormForward({.tokens = 2,
                    .hidden = kHidden,
                    .epsilon = kEpsilon,
                    .x = x.data(),
                    .weight = ones.data(),
                    .y = y.data(),
                    .rstd = rstd.floats()},
                   DType::kF32, context.get());
    EXPECT_TRUE(std::isnan(y.Values()[kHidden - 1]));
    EXPECT_TRUE(std::isfinite(y.Values()[kHidden]));
    LayerNormForward({.tokens = 2,
                      .hidden = kHidden,
                      .epsilon = kEpsilon,
                      .x = x.data(),
                      .weight = ones.data(),
                      .bias = ones.data(),
                      .y = y.data(),
                      .mean = mean.floats(),
                      .rstd = rstd.floats()},
                     DType::kF32, context.get());
    EXPECT_TRUE(std::isnan(y.Values()[0]));
    EXPECT_TRUE(std::isfinite(y.Values()[kHidden]));
  }
}

}  // namespace
}  // namespace planc::host
