// Shared by the kernels' property tests: random shapes and values from a seed, operands whose every
// byte outside the elements is watched, comparison with a reference that carries its error bound,
// and repetition over threads and vector widths.
#ifndef PLANC_KERNELS_PROPERTY_TEST_H_
#define PLANC_KERNELS_PROPERTY_TEST_H_

#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "kernels/context.h"
#include "kernels/error_bound.h"
#include "schemas/dtype.h"

namespace planc::host {

// A matrix of `rows` x `columns` elements, `stride` elements from row to row, that starts `lead`
// elements into an allocation of its own, which ends right behind its last element:
// AddressSanitizer sees one element more. Everything that is no element of the matrix holds NaNs.
class StridedOperand {
 public:
  // Zeros; a stride of 0 stands for `columns`.
  StridedOperand(DType dtype, int64_t rows, int64_t columns, int64_t stride = 0, int64_t lead = 0);

  DType dtype() const { return dtype_; }
  int64_t rows() const { return rows_; }
  int64_t columns() const { return columns_; }
  int64_t stride() const { return stride_; }
  int64_t lead() const { return lead_; }
  // Element (0, 0), and the start of the allocation, `lead` elements before it.
  void* data() { return base() + lead_ * ElementBytes(); }
  void* base_data() { return base(); }
  float* floats() { return static_cast<float*>(data()); }

  double At(int64_t row, int64_t column) const;
  // Rounds to the dtype.
  void Set(int64_t row, int64_t column, double value);
  // All elements, [rows, columns].
  std::vector<double> Values() const;

  // Takes over the elements of an operand of the same layout, in place.
  void CopyFrom(const StridedOperand& other);

  // Whether all bytes outside the elements are as they were made.
  bool GapsIntact() const;
  // Whether all elements have the same bits, or are NaNs in both: which of its NaNs an operation
  // passes on depends on the order of the operands, which the compiler chooses.
  bool SameBits(const StridedOperand& other) const;

 private:
  int64_t ElementBytes() const { return static_cast<int64_t>(SizeOf(dtype_)); }
  char* base() { return reinterpret_cast<char*>(bytes_.data()); }
  int64_t Offset(int64_t row, int64_t column) const { return lead_ + row * stride_ + column; }

  DType dtype_;
  int64_t rows_, columns_, stride_, lead_;
  std::vector<uint8_t> bytes_;
};

// What the values of an operand look like.
enum class ValueKind {
  kNormal,     // standard normal
  kWide,       // of either sign, from 2^-20 to 2^20, with zeros between
  kTiny,       // around the smallest normal number: denormals and zeros among them
  kHuge,       // from 2^80 to the largest number
  kEqual,      // one value throughout
  kNonFinite,  // normal, and in about every second row an infinity or NaN
};

// One case of a property test: shapes and values that follow from its seed.
class RandomCase {
 public:
  explicit RandomCase(uint64_t seed) : engine_(seed) {}

  int64_t Between(int64_t least, int64_t most);
  // From 1 to `most`: mostly sizes at, and one to either side of, the lengths of vectors, panels
  // and blocks, or primes.
  int64_t Size(int64_t most);
  bool Chance(double probability);
  DType ElementType() { return Chance(0.5) ? DType::kF32 : DType::kBF16; }
  // Any kind, or any with finite values only.
  ValueKind Kind() { return static_cast<ValueKind>(Between(0, 5)); }
  ValueKind FiniteKind() { return static_cast<ValueKind>(Between(0, 4)); }
  // One value, not of kind kEqual or kNonFinite.
  double Value(ValueKind kind);

  // A matrix with random contents; with random stride and start when `strided`, with a random start
  // alone otherwise.
  StridedOperand Matrix(DType dtype, int64_t rows, int64_t columns, ValueKind kind,
                        bool strided = false);
  StridedOperand Vector(DType dtype, int64_t elements, ValueKind kind) {
    return Matrix(dtype, 1, elements, kind);
  }

 private:
  std::mt19937_64 engine_;
};

// Calls body for the seeds first_seed to first_seed + cases - 1, and for others where the test was
// asked for more cases (kernels/test_main.cc); stops behind the first case with a
// failure, which names its seed.
void ForEachCase(uint64_t first_seed, int cases, const std::function<void(RandomCase&)>& body);

// Expects element (row, column) to be what expected[row * columns + column] allows, after rounding
// to the dtype; intact gaps.
void ExpectAgrees(const StridedOperand& actual, const std::vector<Bounded>& expected,
                  const std::string& what);

// Expects exactly these elements (any NaN for a NaN); intact gaps.
void ExpectEquals(const StridedOperand& actual, const std::vector<float>& expected,
                  const std::string& what);

// The reference's output, `elements` numbers, from its values alone: exact.
std::vector<Bounded> Exactly(const std::vector<double>& values);

// Runs `kernel`, which writes `outputs`, with one, two and three threads and with every instruction
// set up to the tested one that has the same bits, each time from the outputs as given and with an
// undefined workspace of exactly workspace_bytes(threads) bytes. Expects the same bits each time,
// and intact gaps. Leaves the outputs of the last run.
void ExpectReproducible(const std::vector<StridedOperand*>& outputs,
                        const std::function<int64_t(int threads)>& workspace_bytes,
                        const std::function<void(KernelContext&)>& kernel);
// The same without a workspace.
void ExpectReproducible(const std::vector<StridedOperand*>& outputs,
                        const std::function<void(KernelContext&)>& kernel);

}  // namespace planc::host

#endif  // PLANC_KERNELS_PROPERTY_TEST_H_
