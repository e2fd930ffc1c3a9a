#include "kernels/property_test.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>

#include "kernels/bf16.h"
#include "kernels/tested_instruction_set.h"

namespace planc::host {
namespace {

// Every bit set: a NaN in either type.
constexpr uint8_t kGap = 0xff;

double LargestOf(DType dtype) {
  return dtype == DType::kF32 ? std::numeric_limits<float>::max() : ToFloat(Bf16{0x7f7f});
}

// What one rounding to the dtype adds to a number of this size.
double RoundingOf(DType dtype, double size) {
  const bool is_float = dtype == DType::kF32;
  return std::ldexp(size, is_float ? -24 : -8) + std::ldexp(1.0, is_float ? -150 : -134);
}

bool Allows(const Bounded& expected, double actual, DType dtype) {
  if (!expected.known()) return true;
  const double value = expected.value();
  if (std::isnan(value)) return std::isnan(actual);
  if (std::isinf(value)) return actual == value;
  const double error = expected.error() + RoundingOf(dtype, std::fabs(value) + expected.error());
  const bool may_overflow = std::fabs(value) + error > LargestOf(dtype);
  if (may_overflow && std::isinf(actual) && (actual > 0) == (value > 0)) return true;
  return std::fabs(actual - value) <= error;
}

// Memory of exactly `bytes` bytes, aligned to 64, with undefined contents that read as NaNs.
class ExactWorkspace {
 public:
  explicit ExactWorkspace(int64_t bytes) {
    void* memory = nullptr;
    const size_t size = static_cast<size_t>(bytes);
    if (posix_memalign(&memory, 64, size) == 0) std::memset(memory, kGap, size);
    memory_.reset(memory);
  }
  void* data() { return memory_.get(); }

 private:
  std::unique_ptr<void, void (*)(void*)> memory_{nullptr, std::free};
};

}  // namespace

StridedOperand::StridedOperand(DType dtype, int64_t rows, int64_t columns, int64_t stride,
                               int64_t lead)
    : dtype_(dtype),
      rows_(rows),
      columns_(columns),
      stride_(stride == 0 ? columns : stride),
      lead_(lead) {
  const int64_t elements = rows == 0 ? lead : lead + (rows - 1) * stride_ + columns;
  bytes_.assign(static_cast<size_t>(elements * ElementBytes()), kGap);
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = 0; column < columns; ++column) Set(row, column, 0);
  }
}

double StridedOperand::At(int64_t row, int64_t column) const {
  const uint8_t* at = bytes_.data() + Offset(row, column) * ElementBytes();
  if (dtype_ == DType::kF32) {
    float value;
    std::memcpy(&value, at, sizeof(value));
    return value;
  }
  Bf16 value;
  std::memcpy(&value, at, sizeof(value));
  return ToFloat(value);
}

void StridedOperand::Set(int64_t row, int64_t column, double value) {
  uint8_t* at = bytes_.data() + Offset(row, column) * ElementBytes();
  const float rounded = static_cast<float>(value);
  const Bf16 half = ToBf16(rounded);
  if (dtype_ == DType::kF32) {
    std::memcpy(at, &rounded, sizeof(rounded));
  } else {
    std::memcpy(at, &half, sizeof(half));
  }
}

std::vector<double> StridedOperand::Values() const {
  std::vector<double> values;
  values.reserve(static_cast<size_t>(rows_ * columns_));
  for (int64_t row = 0; row < rows_; ++row) {
    for (int64_t column = 0; column < columns_; ++column) values.push_back(At(row, column));
  }
  return values;
}

void StridedOperand::CopyFrom(const StridedOperand& other) {
  std::copy(other.bytes_.begin(), other.bytes_.end(), bytes_.begin());
}

bool StridedOperand::GapsIntact() const {
  std::vector<uint8_t> rest = bytes_;
  const auto row_bytes = static_cast<size_t>(columns_ * ElementBytes());
  for (int64_t row = 0; row < rows_; ++row) {
    std::fill_n(rest.begin() + Offset(row, 0) * ElementBytes(), row_bytes, kGap);
  }
  return std::all_of(rest.begin(), rest.end(), [](uint8_t byte) { return byte == kGap; });
}

bool StridedOperand::SameBits(const StridedOperand& other) const {
  if (bytes_ == other.bytes_) return true;
  for (int64_t row = 0; row < rows_; ++row) {
    for (int64_t column = 0; column < columns_; ++column) {
      const double mine = At(row, column), theirs = other.At(row, column);
      if (std::isnan(mine) && std::isnan(theirs)) continue;
      if (mine != theirs || std::signbit(mine) != std::signbit(theirs)) return false;
    }
  }
  return true;
}

int64_t RandomCase::Between(int64_t least, int64_t most) {
  return std::uniform_int_distribution<int64_t>(least, most)(engine_);
}

int64_t RandomCase::Size(int64_t most) {
  static constexpr int64_t kTelling[] = {1,  2,  3,  5,  7,  8,  9,  11,  12,  13,  15,  16,
                                         17, 23, 24, 31, 32, 33, 47, 48,  49,  53,  61,  63,
                                         64, 65, 67, 71, 95, 96, 97, 127, 128, 129, 193, 257};
  const int64_t telling = kTelling[Between(0, std::size(kTelling) - 1)];
  return telling <= most && Chance(0.7) ? telling : Between(1, most);
}

bool RandomCase::Chance(double probability) {
  return std::uniform_real_distribution<double>()(engine_) < probability;
}

double RandomCase::Value(ValueKind kind) {
  std::uniform_real_distribution<double> uniform;
  const double sign = Chance(0.5) ? 1 : -1;
  switch (kind) {
    case ValueKind::kWide:
      return Chance(0.05) ? 0 : sign * std::exp2(uniform(engine_) * 40 - 20);
    case ValueKind::kTiny:
      return Chance(0.1) ? 0 : sign * std::exp2(uniform(engine_) * 30 - 150);
    case ValueKind::kHuge:
      // At most the largest bf16, so that rounding does not make an infinity of it.
      return sign * std::min(std::exp2(80 + uniform(engine_) * 48), LargestOf(DType::kBF16));
    default:
      return std::normal_distribution<double>()(engine_);
  }
}

StridedOperand RandomCase::Matrix(DType dtype, int64_t rows, int64_t columns, ValueKind kind,
                                  bool strided) {
  const int64_t stride = columns + (strided ? Between(0, 9) : 0);
  StridedOperand operand(dtype, rows, columns, stride, Between(0, 5));
  const double equal = Value(Chance(0.5) ? ValueKind::kNormal : ValueKind::kWide);
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = 0; column < columns; ++column) {
      operand.Set(row, column, kind == ValueKind::kEqual ? equal : Value(kind));
    }
    if (kind != ValueKind::kNonFinite || !Chance(0.5)) continue;
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    const double special[] = {kInfinity, -kInfinity, std::numeric_limits<double>::quiet_NaN()};
    operand.Set(row, Between(0, columns - 1), special[Between(0, 2)]);
  }
  return operand;
}

void ForEachCase(uint64_t first_seed, int cases, const std::function<void(RandomCase&)>& body) {
  const int64_t factor = TestOptions().seed_factor;
  for (int64_t i = 0; i < cases * factor; ++i) {
    // Those of other factors differ from those of other tests, too.
    const uint64_t seed = first_seed + static_cast<uint64_t>(i) * (i < cases ? 1 : 1'000'003);
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    RandomCase random(seed);
    body(random);
    if (testing::Test::HasFailure()) return;
  }
}

void ExpectAgrees(const StridedOperand& actual, const std::vector<Bounded>& expected,
                  const std::string& what) {
  EXPECT_TRUE(actual.GapsIntact()) << what << ": written outside its elements";
  ASSERT_EQ(static_cast<int64_t>(expected.size()), actual.rows() * actual.columns()) << what;
  for (int64_t i = 0; i < actual.rows() * actual.columns(); ++i) {
    const double value = actual.At(i / actual.columns(), i % actual.columns());
    ASSERT_TRUE(Allows(expected[i], value, actual.dtype()))
        << what << " " << DTypeName(actual.dtype()) << " " << actual.rows() << " x "
        << actual.columns() << ", element (" << i / actual.columns() << ", " << i % actual.columns()
        << "): " << value << ", expected " << expected[i].value() << " +- " << expected[i].error()
        << " before rounding";
  }
}

void ExpectEquals(const StridedOperand& actual, const std::vector<float>& expected,
                  const std::string& what) {
  EXPECT_TRUE(actual.GapsIntact()) << what << ": written outside its elements";
  ASSERT_EQ(static_cast<int64_t>(expected.size()), actual.rows() * actual.columns()) << what;
  for (int64_t i = 0; i < actual.rows() * actual.columns(); ++i) {
    const double value = actual.At(i / actual.columns(), i % actual.columns());
    const bool same =
        std::isnan(expected[i])
            ? std::isnan(value)
            : value == expected[i] && std::signbit(value) == std::signbit(expected[i]);
    ASSERT_TRUE(same) << what << " " << DTypeName(actual.dtype()) << " " << actual.rows() << " x "
                      << actual.columns() << ", element " << i << ": " << value << ", expected "
                      << expected[i];
  }
}

std::vector<Bounded> Exactly(const std::vector<double>& values) {
  return std::vector<Bounded>(values.begin(), values.end());
}

void ExpectReproducible(const std::vector<StridedOperand*>& outputs,
                        const std::function<int64_t(int threads)>& workspace_bytes,
                        const std::function<void(KernelContext&)>& kernel) {
  std::vector<StridedOperand> given, first;
  for (const StridedOperand* output : outputs) given.push_back(*output);
  for (const InstructionSet set : SetsWithTestedBits()) {
    UseVectorsOf(set);
    for (int threads = 1; threads <= 3; ++threads) {
      const int64_t bytes = workspace_bytes(threads);
      ExactWorkspace workspace(bytes);
      KernelContext context{workspace.data(), static_cast<size_t>(bytes), threads, set};
      for (size_t i = 0; i < outputs.size(); ++i) outputs[i]->CopyFrom(given[i]);
      kernel(context);
      for (size_t i = 0; i < outputs.size(); ++i) {
        EXPECT_TRUE(outputs[i]->GapsIntact()) << "output " << i << ": gaps";
        if (first.size() < outputs.size()) {
          first.push_back(*outputs[i]);
          continue;
        }
        EXPECT_TRUE(outputs[i]->SameBits(first[i]))
            << "output " << i << " with " << threads << " threads and instruction set "
            << InstructionSetName(set) << " differs from the first run";
      }
    }
  }
  UseVectorsOf(TestedInstructionSet());
}

void ExpectReproducible(const std::vector<StridedOperand*>& outputs,
                        const std::function<void(KernelContext&)>& kernel) {
  ExpectReproducible(
      outputs, [](int) { return int64_t{0}; }, kernel);
}

}  // namespace planc::host
