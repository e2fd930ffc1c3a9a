// Shared by the kernels' tests: random operands in either element type, and comparison with a
// reference computed in double on the very values the kernel saw.
#ifndef PLANC_KERNELS_TEST_DATA_H_
#define PLANC_KERNELS_TEST_DATA_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "kernels/context.h"
#include "kernels/tested_instruction_set.h"
#include "schemas/dtype.h"

namespace planc::host {

// An operand of exactly the given size, so that AddressSanitizer sees any access beyond it.
class Operand {
 public:
  // Zeros.
  Operand(DType dtype, size_t elements);
  // `values` rounded to dtype.
  Operand(DType dtype, const std::vector<double>& values);
  // Normal values times `scale`; the same for the same seed.
  static Operand Random(DType dtype, size_t elements, uint64_t seed, double scale = 1);

  void* data() { return bytes_.data(); }
  const void* data() const { return bytes_.data(); }
  float* floats() { return static_cast<float*>(data()); }
  std::vector<double> Values() const;
  // The stored bytes, for comparisons bit by bit.
  const std::vector<uint8_t>& bytes() const { return bytes_; }
  DType dtype() const { return dtype_; }

 private:
  DType dtype_;
  size_t elements_;
  std::vector<uint8_t> bytes_;
};

// A context with a workspace of exactly `bytes` bytes.
class TestContext {
 public:
  explicit TestContext(int threads = 1, size_t bytes = 0)
      : workspace_(bytes), context_{workspace_.data(), bytes, threads, TestedInstructionSet()} {}
  KernelContext& get() { return context_; }

 private:
  std::vector<uint8_t> workspace_;
  KernelContext context_;
};

// Normal values.
std::vector<double> RandomValues(size_t elements, uint64_t seed, double scale = 1);

// Expects |actual - expected| <= tolerance * (max |expected| + |expected|) elementwise, where
// tolerance covers one rounding to the dtype and `steps` fp32 roundings.
void ExpectClose(const Operand& actual, const std::vector<double>& expected,
                 const std::string& what, double steps = 16);

// Expects `gradient` to be the derivative of `function` at `point`, by central differences in
// double.
void ExpectGradient(const std::function<double(const std::vector<double>&)>& function,
                    const std::vector<double>& point, const std::vector<double>& gradient,
                    const std::string& what);

// The scalar sum(a[i] * b[i]): the functional whose gradient a backward pass computes.
double Dot(const std::vector<double>& a, const std::vector<double>& b);

// The two element types of activations.
inline const std::vector<DType>& ElementTypes() {
  static const std::vector<DType> types = {DType::kF32, DType::kBF16};
  return types;
}

}  // namespace planc::host

#endif  // PLANC_KERNELS_TEST_DATA_H_
