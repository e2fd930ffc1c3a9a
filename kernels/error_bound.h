// How far an fp32 evaluation of an expression can be from the exact one.
#ifndef PLANC_KERNELS_ERROR_BOUND_H_
#define PLANC_KERNELS_ERROR_BOUND_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace planc::host {

// A number computed in double, with a bound on the error that fp32 arithmetic makes on the way to
// it: running error analysis (Higham, Accuracy and Stability of Numerical Algorithms, section 3.3).
// Evaluating a reference on Bounded numbers gives the expected values and their tolerances at once.
//
// The model of fp32: an operation returns the exact result for its operands, which carry their own
// errors, within u = 2^-24 of its size; square roots, quotients and elementary functions within a
// few u. Products and quotients may lose half of the smallest denormal number as well, exp the
// smallest normal one.
//
// Sums may be formed in another order than the one written here. What one addition of a sum costs
// is u times the magnitude it meets: the sum of the absolute values of all terms below it. A term
// with r terms after it in the written order meets at most r + 8 additions in the kernels (they sum
// in lanes that are folded five times, or in consecutive pieces), which 9 r covers for r >= 1.
//
// Infinities and NaNs follow IEEE arithmetic. Where rounding decides what happens (an intermediate
// result near the largest float, infinity times something that may be zero) the number is unknown,
// and nothing is expected of it.
class Bounded {
 public:
  Bounded() = default;
  // Exact. Implicit, so that references written for any scalar take constants.
  Bounded(double value) : value_(value), magnitude_(std::fabs(value)) {}
  Bounded(double value, double error) : value_(value), error_(error) { Finish(std::fabs(value)); }
  // A scalar formed in double and rounded to float once.
  static Bounded Rounded(double value) {
    return Bounded(value, kUnit * std::fabs(value) + kDenormal);
  }
  // The value of a sum whose terms' absolute values add up to `magnitude`.
  static Bounded Sum(double value, double error, double magnitude) {
    Bounded sum;
    sum.value_ = value;
    sum.error_ = error;
    return sum.Finish(magnitude);
  }
  // A number that nothing is expected of.
  static Bounded Unknown() {
    Bounded unknown;
    unknown.known_ = false;
    return unknown;
  }

  double value() const { return value_; }
  double error() const { return error_; }
  bool known() const { return known_; }
  bool is_nan() const { return known_ && std::isnan(value_); }

  Bounded operator-() const {
    Bounded result = *this;
    result.value_ = -value_;
    return result;
  }
  friend Bounded operator+(const Bounded& a, const Bounded& b) {
    if (!Determined(a, b)) return Undetermined(a, b);
    Bounded sum;
    sum.value_ = a.value_ + b.value_;
    const double magnitude = a.magnitude_ + b.magnitude_;
    sum.error_ = a.error_ + b.error_ + 9 * kUnit * magnitude;
    return sum.Finish(magnitude);
  }
  friend Bounded operator-(const Bounded& a, const Bounded& b) { return a + -b; }
  friend Bounded operator*(const Bounded& a, const Bounded& b) {
    if (!Determined(a, b)) return Undetermined(a, b);
    if ((std::isinf(a.value_) && b.MayVanish()) || (std::isinf(b.value_) && a.MayVanish())) {
      return Unknown();
    }
    Bounded product;
    product.value_ = a.value_ * b.value_;
    product.error_ = std::fabs(a.value_) * b.error_ + std::fabs(b.value_) * a.error_ +
                     a.error_ * b.error_ + 2 * kUnit * std::fabs(product.value_) + kDenormal;
    return product.Finish(a.magnitude_ * b.magnitude_);
  }
  friend Bounded operator/(const Bounded& a, const Bounded& b) {
    if (!Determined(a, b)) return Undetermined(a, b);
    if (b.MayVanish() || (b.value_ == 0 && a.MayVanish()) ||
        (std::isinf(b.value_) && std::isinf(a.value_) && a.error_ > 0)) {
      return Unknown();
    }
    Bounded quotient;
    quotient.value_ = a.value_ / b.value_;
    const double least = std::fabs(b.value_) - b.error_;
    quotient.error_ = (a.error_ + std::fabs(quotient.value_) * b.error_) / least +
                      4 * kUnit * std::fabs(quotient.value_) + 2 * kDenormal;
    return quotient.Finish(a.magnitude_ / least);
  }
  Bounded& operator+=(const Bounded& other) { return *this = *this + other; }
  Bounded& operator*=(const Bounded& other) { return *this = *this * other; }
  Bounded& operator/=(const Bounded& other) { return *this = *this / other; }
  friend bool operator<(const Bounded& a, const Bounded& b) { return a.value_ < b.value_; }
  friend bool operator>(const Bounded& a, const Bounded& b) { return a.value_ > b.value_; }

  // Of numbers that are not negative.
  friend Bounded sqrt(const Bounded& a) {
    if (!a.known_ || !std::isfinite(a.value_) || a.value_ < 0) return a.Map(std::sqrt(a.value_), 0);
    const double root = std::sqrt(a.value_);
    const double below = std::sqrt(std::max(0.0, a.value_ - a.error_));
    const double spread = std::max(root - below, std::sqrt(a.value_ + a.error_) - root);
    return a.Map(root, spread + 2 * kUnit * root);
  }
  friend Bounded exp(const Bounded& a) {
    constexpr double kOverflow = 88.0;
    if (a.known_ && a.value_ + a.error_ > kOverflow && !std::isinf(a.value_)) return Unknown();
    const double value = std::exp(a.value_);
    const double spread =
        a.error_ < 1 ? value * std::expm1(a.error_) : std::exp(a.value_ + a.error_);
    const double underflow = value == 0 && std::isinf(a.value_) ? 0 : kSmallestNormal;
    return a.Map(value, spread + 4 * kUnit * value + underflow);
  }
  friend Bounded log(const Bounded& a) {
    if (a.MayVanish()) return Unknown();
    const double value = std::log(a.value_);
    const double spread = -std::log1p(-a.error_ / a.value_);
    return a.Map(value, spread + 4 * kUnit * (std::fabs(value) + 1));
  }
  friend Bounded tanh(const Bounded& a) { return a.Map(std::tanh(a.value_), a.error_ + 4 * kUnit); }

 private:
  static constexpr double kUnit = 0x1p-24;
  static constexpr double kDenormal = 0x1p-150;
  static constexpr double kSmallestNormal = 0x1p-126;

  // Whether the sign, and whether it is zero at all, is a matter of rounding.
  bool MayVanish() const { return error_ > 0 && !(std::fabs(value_) > error_); }
  static bool Determined(const Bounded& a, const Bounded& b) { return a.known_ && b.known_; }
  // A NaN stays one, whatever it meets.
  static Bounded Undetermined(const Bounded& a, const Bounded& b) {
    return a.is_nan() || b.is_nan() ? Bounded(std::numeric_limits<double>::quiet_NaN()) : Unknown();
  }
  // f(*this), from its value and error.
  Bounded Map(double value, double error) const {
    return known_ ? Bounded(value, error) : Unknown();
  }
  // Completes a result whose value and error are set.
  Bounded& Finish(double magnitude) {
    magnitude_ = std::max(magnitude, std::fabs(value_) + error_);
    if (!std::isfinite(value_)) {
      error_ = 0;
      magnitude_ = std::fabs(value_);
    } else if (!(magnitude_ <= std::numeric_limits<float>::max())) {
      *this = Unknown();
    }
    return *this;
  }

  double value_ = 0;
  double error_ = 0;
  // The sum of the absolute values of the terms that the number was summed from; at least
  // |value| + error.
  double magnitude_ = 0;
  bool known_ = true;
};

// sum over i < n of a[i * a_stride] * b[i * b_stride], as the operators above would form it, in
// less time. `Left` is Bounded or double.
template <typename Left>
Bounded BoundedDot(int64_t n, const Left* a, int64_t a_stride, const double* b, int64_t b_stride) {
  double value = 0, error = 0, magnitude = 0;
  for (int64_t i = 0; i < n; ++i) {
    const Bounded left = a[i * a_stride];
    const double right = b[i * b_stride];
    if (!left.known() || !std::isfinite(left.value()) || !std::isfinite(right)) {
      Bounded sum;
      for (int64_t j = 0; j < n; ++j) sum += Bounded(a[j * a_stride]) * Bounded(b[j * b_stride]);
      return sum;
    }
    value += left.value() * right;
    error += left.error() * std::fabs(right) + 0x1p-150;
    magnitude += std::fabs(left.value() * right);
  }
  error += 0x1p-24 * static_cast<double>(n + 8) * (magnitude + error);
  return Bounded::Sum(value, error, magnitude);
}

}  // namespace planc::host

#endif  // PLANC_KERNELS_ERROR_BOUND_H_
