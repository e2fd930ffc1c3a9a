#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kernels/optimizer.h"
#include "kernels/property_test.h"
#include "kernels/tested_instruction_set.h"

namespace planc::host {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Enough elements for several threads in every sixteenth case.
int64_t Elements(RandomCase& random) {
  return random.Chance(0.0625) ? 3 * 16384 + random.Size(200) : random.Size(300);
}

// One update of random moments and parameters.
struct AdamWProblem {
  explicit AdamWProblem(RandomCase& random)
      : elements(Elements(random)),
        step(random.Chance(0.3) ? 1 : random.Between(2, 100000)),
        lr(std::exp2(-static_cast<double>(random.Between(5, 20)))),
        beta1(random.Chance(0.5) ? 0.9 : 0.8),
        beta2(random.Chance(0.5) ? 0.999 : 0.95),
        epsilon(random.Chance(0.5) ? 1e-8 : 1e-6),
        weight_decay(random.Chance(0.3) ? 0 : 0.1),
        gradient(random.Vector(random.ElementType(), elements, random.Kind())),
        coefficient(static_cast<float>(std::fabs(random.Value(ValueKind::kNormal)))),
        has_coefficient(random.Chance(0.5)),
        master(random.Vector(DType::kF32, elements,
                             random.Chance(0.3) ? ValueKind::kWide : ValueKind::kNormal)),
        first(random.Vector(random.ElementType(), elements, ValueKind::kNormal)),
        second(random.Vector(first.dtype(), elements,
                             random.Chance(0.3) ? ValueKind::kTiny : ValueKind::kNormal)),
        copy(random.ElementType(), 1, elements, 0, random.Between(0, 5)) {
    const bool starts = random.Chance(0.2);
    for (int64_t i = 0; i < elements; ++i) {
      // The second moment is an average of squares.
      second.Set(0, i, starts ? 0 : std::fabs(second.At(0, i)));
      if (starts) first.Set(0, i, 0);
    }
  }

  AdamWArgs Args(bool with_copy) {
    return {.elements = elements,
            .step = step,
            .lr = lr,
            .beta1 = beta1,
            .beta2 = beta2,
            .epsilon = epsilon,
            .weight_decay = weight_decay,
            .gradient = gradient.data(),
            .gradient_dtype = gradient.dtype(),
            .coefficient = has_coefficient ? &coefficient : nullptr,
            .master = master.floats(),
            .first_moment = first.data(),
            .second_moment = second.data(),
            .state_dtype = first.dtype(),
            .compute_copy = with_copy ? copy.data() : nullptr,
            .compute_dtype = copy.dtype()};
  }

  // Element i after the update: p, m and v before they are rounded to their types.
  struct Element {
    Bounded p, m, v;
  };
  Element Expected(int64_t i) const {
    // The scalars are formed in double and rounded once.
    const Bounded step_size = Bounded::Rounded(lr / (1 - std::pow(beta1, step)));
    const Bounded root_correction = Bounded::Rounded(std::sqrt(1 - std::pow(beta2, step)));
    const Bounded g = Bounded(gradient.At(0, i)) * Bounded(has_coefficient ? coefficient : 1.0f);
    Element result;
    result.m = Bounded::Rounded(beta1) * Bounded(first.At(0, i)) + Bounded::Rounded(1 - beta1) * g;
    result.v =
        Bounded::Rounded(beta2) * Bounded(second.At(0, i)) + Bounded::Rounded(1 - beta2) * g * g;
    const Bounded decayed = Bounded(master.At(0, i)) * Bounded::Rounded(1 - lr * weight_decay);
    const Bounded denominator = sqrt(result.v) / root_correction + Bounded::Rounded(epsilon);
    result.p = decayed - step_size * (result.m / denominator);
    return result;
  }

  int64_t elements, step;
  double lr, beta1, beta2, epsilon, weight_decay;
  StridedOperand gradient;
  float coefficient;
  bool has_coefficient;
  StridedOperand master, first, second, copy;
};

TEST(AdamWProperty, AgreesWithTheReference) {
  ForEachCase(1, 500, [](RandomCase& random) {
    AdamWProblem p(random);
    std::vector<Bounded> master, first, second;
    for (int64_t i = 0; i < p.elements; ++i) {
      const AdamWProblem::Element element = p.Expected(i);
      master.push_back(element.p);
      first.push_back(element.m);
      second.push_back(element.v);
    }
    AdamWProblem without_copy = p;
    ExpectReproducible({&p.master, &p.first, &p.second, &p.copy},
                       [&](KernelContext& context) { AdamW(p.Args(true), context); });
    ExpectAgrees(p.master, master, "p");
    ExpectAgrees(p.first, first, "m");
    ExpectAgrees(p.second, second, "v");
    // The copy is the new parameter, rounded: exactly.
    StridedOperand rounded = p.copy;
    for (int64_t i = 0; i < p.elements; ++i) rounded.Set(0, i, p.master.At(0, i));
    const std::vector<double> values = rounded.Values();
    ExpectEquals(p.copy, std::vector<float>(values.begin(), values.end()), "copy");
    ExpectReproducible({&without_copy.master, &without_copy.first, &without_copy.second},
                       [&](KernelContext& context) { AdamW(without_copy.Args(false), context); });
    EXPECT_TRUE(without_copy.master.SameBits(p.master)) << "the copy changes the parameters";
  });
}

TEST(AdamWProperty, ExtremeGradients) {
  const double gradients[] = {0, 1e-45, 1e-30, 3e38, -3e38, kInfinity, -kInfinity, kNan};
  const int64_t n = std::size(gradients);
  StridedOperand gradient(DType::kF32, 1, n), master(DType::kF32, 1, n);
  StridedOperand first(DType::kF32, 1, n), second(DType::kF32, 1, n);
  for (int64_t i = 0; i < n; ++i) {
    gradient.Set(0, i, gradients[i]);
    master.Set(0, i, 2);
  }
  ExpectReproducible({&master, &first, &second}, [&](KernelContext& context) {
    AdamW({.elements = n,
           .step = 1,
           .lr = 0.5,
           .beta1 = 0.9,
           .beta2 = 0.99,
           .epsilon = 1e-8,
           .weight_decay = 0,
           .gradient = gradient.data(),
           .master = master.floats(),
           .first_moment = first.data(),
           .second_moment = second.data()},
          context);
  });
  // No gradient, no change: 0 / epsilon.
  EXPECT_EQ(master.At(0, 0), 2);
  // Squares that vanish leave m / epsilon.
  EXPECT_EQ(master.At(0, 1), 2);
  EXPECT_EQ(master.At(0, 2), 2);
  // Squares that overflow are a step of zero, and a second moment that shows it.
  EXPECT_EQ(master.At(0, 3), 2);
  EXPECT_EQ(second.At(0, 4), kInfinity);
  // Infinities and NaNs reach the parameter: infinity / infinity.
  for (int64_t i = 5; i < n; ++i) {
    EXPECT_TRUE(std::isnan(master.At(0, i))) << gradients[i];
    EXPECT_FALSE(std::isfinite(first.At(0, i))) << gradients[i];
    EXPECT_FALSE(std::isfinite(second.At(0, i))) << gradients[i];
  }
}

TEST(SumSquaresProperty, AgreesWithLongDouble) {
  ForEachCase(1000, 400, [](RandomCase& random) {
    const int64_t n = random.Chance(0.05) ? 5 * 16384 + random.Size(200) : Elements(random);
    StridedOperand gradient = random.Vector(random.ElementType(), n, random.Kind());
    const double before = std::fabs(random.Value(ValueKind::kNormal));
    long double expected = before;
    for (const double value : gradient.Values()) {
      expected += static_cast<long double>(value) * static_cast<long double>(value);
    }
    double first = 0;
    for (int threads = 1; threads <= 3; ++threads) {
      double sum = before;
      KernelContext context{nullptr, 0, threads, TestedInstructionSet()};
      SumSquares({.elements = n, .gradient = gradient.data(), .sum = &sum}, gradient.dtype(),
                 context);
      if (std::isfinite(static_cast<double>(expected))) {
        // Squares of floats are exact in double; there are n additions.
        const double relative = static_cast<double>(n) * 0x1p-53;
        ASSERT_NEAR(sum, static_cast<double>(expected), static_cast<double>(expected) * relative);
      } else if (std::isnan(static_cast<double>(expected))) {
        ASSERT_TRUE(std::isnan(sum));
      } else {
        ASSERT_EQ(sum, kInfinity);
      }
      if (threads == 1) first = sum;
      ASSERT_TRUE(sum == first || std::isnan(sum)) << threads << " threads";
    }
  });
}

TEST(ClipCoefficientProperty, BoundsTheNorm) {
  ForEachCase(2000, 2000, [](RandomCase& random) {
    double sum_squares = std::exp2(static_cast<double>(random.Between(-300, 250))) *
                         std::fabs(random.Value(ValueKind::kNormal));
    if (random.Chance(0.1)) sum_squares = 0;
    if (random.Chance(0.1)) sum_squares = random.Chance(0.5) ? kInfinity : kNan;
    const float clip = random.Chance(0.3) ? 0 : static_cast<float>(random.Between(1, 100)) / 16;
    float norm, coefficient;
    int32_t nonfinite;
    KernelContext context{nullptr, 0, 1, TestedInstructionSet()};
    ClipCoefficient({.sum_squares = &sum_squares,
                     .clip_norm = clip,
                     .norm = &norm,
                     .coefficient = &coefficient,
                     .nonfinite = &nonfinite},
                    context);
    ASSERT_EQ(nonfinite, std::isfinite(sum_squares) ? 0 : 1) << sum_squares;
    const double exact = std::sqrt(sum_squares);
    if (nonfinite == 1) {
      ASSERT_EQ(coefficient, 1);
      ASSERT_FALSE(std::isfinite(norm));
      return;
    }
    ASSERT_EQ(norm, static_cast<float>(exact));
    const bool clips = clip > 0 && exact > clip;
    ASSERT_EQ(coefficient, clips ? static_cast<float>(clip / (exact + 1e-6)) : 1.0f);
    ASSERT_LE(coefficient * exact, clips ? clip * (1 + 0x1p-23) : exact);
  });
}

}  // namespace
}  // namespace planc::host
