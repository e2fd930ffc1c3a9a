#include "kernels/test_data.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "kernels/bf16.h"

namespace planc::host {

Operand::Operand(DType dtype, size_t elements)
    : dtype_(dtype), elements_(elements), bytes_(elements * SizeOf(dtype)) {}

Operand::Operand(DType dtype, const std::vector<double>& values) : Operand(dtype, values.size()) {
  for (size_t i = 0; i < elements_; ++i) {
    const float value = static_cast<float>(values[i]);
    if (dtype == DType::kF32) {
      reinterpret_cast<float*>(bytes_.data())[i] = value;
    } else {
      reinterpret_cast<Bf16*>(bytes_.data())[i] = ToBf16(value);
    }
  }
}

Operand Operand::Random(DType dtype, size_t elements, uint64_t seed, double scale) {
  return Operand(dtype, RandomValues(elements, seed, scale));
}

std::vector<double> Operand::Values() const {
  std::vector<double> values(elements_);
  for (size_t i = 0; i < elements_; ++i) {
    values[i] = dtype_ == DType::kF32 ? reinterpret_cast<const float*>(bytes_.data())[i]
                                      : ToFloat(reinterpret_cast<const Bf16*>(bytes_.data())[i]);
  }
  return values;
}

std::vector<double> RandomValues(size_t elements, uint64_t seed, double scale) {
  std::mt19937_64 engine(seed);
  std::normal_distribution<double> normal(0, scale);
  std::vector<double> values(elements);
  for (double& value : values) value = normal(engine);
  return values;
}

void ExpectClose(const Operand& actual, const std::vector<double>& expected,
                 const std::string& what, double steps) {
  const std::vector<double> values = actual.Values();
  ASSERT_EQ(values.size(), expected.size()) << what;
  double largest = 0;
  for (double value : expected) largest = std::max(largest, std::fabs(value));
  const double fp32 = steps * std::ldexp(1.0, -24);
  const double rounding = actual.dtype() == DType::kBF16 ? std::ldexp(1.0, -8) : 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const double tolerance = fp32 * largest + (fp32 + rounding) * std::fabs(expected[i]);
    // Written so that a NaN fails.
    ASSERT_TRUE(std::fabs(values[i] - expected[i]) <= tolerance)
        << what << ", element " << i << ": " << values[i] << ", expected " << expected[i] << " +- "
        << tolerance;
  }
}

void ExpectGradient(const std::function<double(const std::vector<double>&)>& function,
                    const std::vector<double>& point, const std::vector<double>& gradient,
                    const std::string& what) {
  ASSERT_EQ(point.size(), gradient.size()) << what;
  constexpr double kStep = 1e-5;
  std::vector<double> moved = point;
  for (size_t i = 0; i < point.size(); ++i) {
    moved[i] = point[i] + kStep;
    const double above = function(moved);
    moved[i] = point[i] - kStep;
    const double below = function(moved);
    moved[i] = point[i];
    const double numeric = (above - below) / (2 * kStep);
    ASSERT_NEAR(gradient[i], numeric, 1e-7 * (1 + std::fabs(numeric))) << what << ", element " << i;
  }
}

double Dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

}  // namespace planc::host
