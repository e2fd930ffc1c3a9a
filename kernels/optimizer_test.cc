#include "kernels/optimizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/reference_optimizer.h"
#include "kernels/test_data.h"

namespace planc::host {
namespace {

TEST(SumSquares, IsExactToDoubleAndIndependentOfThreads) {
  for (DType dtype : ElementTypes()) {
    for (int64_t n : {0, 1, 33, 20000, 200001}) {
      const Operand gradient = Operand::Random(dtype, n, 1, 1e-3);
      double expected = 0.5;
      for (double value : gradient.Values()) expected += value * value;
      double first = 0;
      for (int threads : {1, 2, 5}) {
        double sum = 0.5;
        TestContext context(threads);
        SumSquares({.elements = n, .gradient = gradient.data(), .sum = &sum}, dtype, context.get());
        EXPECT_NEAR(sum, expected, 1e-12 * expected);
        if (threads == 1) first = sum;
        EXPECT_EQ(sum, first) << threads << " threads";
      }
    }
  }
}

TEST(SumSquares, HoldsTheSquareOfAnyFloat) {
  const Operand large(DType::kF32, std::vector<double>(3, 3e38));
  double sum = 0;
  TestContext context;
  SumSquares({.elements = 3, .gradient = large.data(), .sum = &sum}, DType::kF32, context.get());
  EXPECT_NEAR(sum / 27e76, 1, 1e-6);
  const Operand bad(DType::kBF16, std::vector<double>{1, std::nan(""), 1});
  SumSquares({.elements = 3, .gradient = bad.data(), .sum = &sum}, DType::kBF16, context.get());
  EXPECT_TRUE(std::isnan(sum));
}

struct Clip {
  explicit Clip(double sum_squares, float clip_norm) {
    TestContext context;
    ClipCoefficient({.sum_squares = &sum_squares,
                     .clip_norm = clip_norm,
                     .norm = &norm,
                     .coefficient = &coefficient,
                     .nonfinite = &nonfinite},
                    context.get());
  }
  float norm = -1;
  float coefficient = -1;
  int32_t nonfinite = -1;
};

TEST(ClipCoefficient, ClipsOnlyLargeFiniteNorms) {
  const Clip large(16, 1);
  EXPECT_EQ(large.norm, 4);
  EXPECT_FLOAT_EQ(large.coefficient, static_cast<float>(1 / (4 + 1e-6)));
  EXPECT_EQ(large.nonfinite, 0);
  EXPECT_EQ(Clip(0.25, 1).coefficient, 1);
  EXPECT_EQ(Clip(16, 0).coefficient, 1);  // clipping is off
  EXPECT_EQ(Clip(0, 1).coefficient, 1);
  for (double bad : {std::numeric_limits<double>::infinity(), std::nan("")}) {
    EXPECT_EQ(Clip(bad, 1).nonfinite, 1);
    EXPECT_EQ(Clip(bad, 1).coefficient, 1);
    EXPECT_FALSE(std::isfinite(Clip(bad, 1).norm));
  }
}

struct Update {
  DType gradient;
  DType state;
  DType compute;
};
const Update kUpdates[] = {{DType::kF32, DType::kF32, DType::kF32},
                           {DType::kF32, DType::kF32, DType::kBF16},
                           {DType::kBF16, DType::kBF16, DType::kBF16}};

TEST(AdamW, FollowsTheReferenceForSeveralSteps) {
  constexpr int64_t kElements = 1237;
  constexpr double kLr = 3e-3, kBeta1 = 0.9, kBeta2 = 0.95, kEpsilon = 1e-8, kDecay = 0.1;
  for (const Update& types : kUpdates) {
    SCOPED_TRACE(DTypeName(types.state));
    Operand master = Operand::Random(DType::kF32, kElements, 1);
    Operand m(types.state, kElements), v(types.state, kElements), copy(types.compute, kElements);
    std::vector<double> p_expected = master.Values(), m_expected(kElements), v_expected(kElements);
    const float coefficient = 0.75f;
    for (int64_t step = 1; step <= 5; ++step) {
      const Operand gradient = Operand::Random(types.gradient, kElements, 10 + step, 0.1);
      TestContext context(2);
      AdamW({.elements = kElements,
             .step = step,
             .lr = kLr,
             .beta1 = kBeta1,
             .beta2 = kBeta2,
             .epsilon = kEpsilon,
             .weight_decay = kDecay,
             .gradient = gradient.data(),
             .gradient_dtype = types.gradient,
             .coefficient = &coefficient,
             .master = master.floats(),
             .first_moment = m.data(),
             .second_moment = v.data(),
             .state_dtype = types.state,
             .compute_copy = copy.data(),
             .compute_dtype = types.compute},
            context.get());
      const std::vector<double> g = gradient.Values();
      for (int64_t i = 0; i < kElements; ++i) {
        reference::AdamWElement<double>(g[i] * coefficient, step, kLr, kBeta1, kBeta2, kEpsilon,
                                        kDecay, &p_expected[i], &m_expected[i], &v_expected[i]);
      }
      ExpectClose(m, m_expected, "m", 16);
      ExpectClose(v, v_expected, "v", 16);
      // bf16 moments carry a relative error of 2^-9 into an update of about lr.
      const double steps = types.state == DType::kF32 ? 32 : 4096;
      ExpectClose(master, p_expected, "master", steps);
      EXPECT_EQ(copy.bytes(), Operand(types.compute, master.Values()).bytes());
      m_expected = m.Values(), v_expected = v.Values(), p_expected = master.Values();
    }
  }
}

TEST(AdamW, NeedsNeitherCoefficientNorCopyAndCutsAnywhere) {
  constexpr int64_t kElements = 200;
  const Operand gradient = Operand::Random(DType::kF32, kElements, 2);
  Operand whole = Operand::Random(DType::kF32, kElements, 1);
  Operand pieces = whole;
  Operand m(DType::kF32, kElements), v(DType::kF32, kElements);
  Operand m_pieces = m, v_pieces = v;
  AdamWArgs args = {.elements = kElements,
                    .step = 1,
                    .lr = 0.01,
                    .beta1 = 0.9,
                    .beta2 = 0.99,
                    .epsilon = 1e-8,
                    .weight_decay = 0,
                    .gradient = gradient.data(),
                    .master = whole.floats(),
                    .first_moment = m.data(),
                    .second_moment = v.data()};
  TestContext context;
  AdamW(args, context.get());
  const std::vector<double> before = pieces.Values();
  for (int64_t begin = 0; begin < kElements; begin += 33) {
    args.elements = std::min<int64_t>(33, kElements - begin);
    args.gradient = static_cast<const float*>(gradient.data()) + begin;
    args.master = pieces.floats() + begin;
    args.first_moment = m_pieces.floats() + begin;
    args.second_moment = v_pieces.floats() + begin;
    AdamW(args, context.get());
  }
  EXPECT_EQ(pieces.bytes(), whole.bytes());
  EXPECT_EQ(v_pieces.bytes(), v.bytes());
  // The first step moves every parameter by lr against the sign of its gradient.
  for (int64_t i = 0; i < kElements; ++i) {
    EXPECT_NEAR(whole.Values()[i] - before[i], gradient.Values()[i] > 0 ? -0.01 : 0.01, 1e-6);
  }
}

}  // namespace
}  // namespace planc::host
