#include "kernels/elementwise.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "kernels/bf16.h"
#include "kernels/test_data.h"

namespace planc::host {
namespace {

const int64_t kSizes[] = {0, 1, 15, 32, 33, 4097, 50000};

TEST(Add, AddsAndRoundsOnce) {
  for (DType dtype : ElementTypes()) {
    for (int64_t n : kSizes) {
      const Operand a = Operand::Random(dtype, n, 1), b = Operand::Random(dtype, n, 2);
      Operand c(dtype, n), in_place = a;
      std::vector<double> expected = a.Values();
      const std::vector<double> addend = b.Values();
      for (int64_t i = 0; i < n; ++i) expected[i] += addend[i];
      TestContext context(2);
      Add({.elements = n, .a = a.data(), .b = b.data(), .c = c.data()}, dtype, context.get());
      Add({.elements = n, .a = in_place.data(), .b = b.data(), .c = in_place.data()}, dtype,
          context.get());
      EXPECT_EQ(c.bytes(), Operand(dtype, expected).bytes()) << DTypeName(dtype) << " " << n;
      EXPECT_EQ(in_place.bytes(), c.bytes());
    }
  }
}

TEST(Scale, Multiplies) {
  for (DType dtype : ElementTypes()) {
    Operand x = Operand::Random(dtype, 77, 1);
    std::vector<double> expected = x.Values();
    for (double& value : expected) value *= 0.375;
    TestContext context;
    Scale({.elements = 77, .factor = 0.375f, .x = x.data()}, dtype, context.get());
    EXPECT_EQ(x.bytes(), Operand(dtype, expected).bytes());
  }
}

TEST(Accumulate, AddsEveryPairOfTypes) {
  for (DType from : ElementTypes()) {
    for (DType to : ElementTypes()) {
      const Operand source = Operand::Random(from, 101, 1);
      Operand destination = Operand::Random(to, 101, 2);
      std::vector<double> expected = destination.Values();
      const std::vector<double> addend = source.Values();
      for (size_t i = 0; i < expected.size(); ++i) expected[i] += addend[i];
      TestContext context;
      Accumulate({.elements = 101,
                  .source = source.data(),
                  .source_dtype = from,
                  .destination = destination.data(),
                  .destination_dtype = to},
                 context.get());
      ExpectClose(destination, expected, "sum", 2);
    }
  }
}

TEST(Bias, MatchesTheSumsOverRows) {
  for (DType dtype : ElementTypes()) {
    constexpr int64_t kTokens = 300, kColumns = 45;
    const Operand bias = Operand::Random(dtype, kColumns, 1);
    const Operand dy = Operand::Random(dtype, kTokens * kColumns, 2);
    Operand y = Operand::Random(dtype, kTokens * kColumns, 3);
    Operand dbias = Operand::Random(DType::kF32, kColumns, 4);
    std::vector<double> y_expected = y.Values(), d_expected = dbias.Values();
    const std::vector<double> bias_values = bias.Values(), dy_values = dy.Values();
    for (int64_t i = 0; i < kTokens * kColumns; ++i) {
      y_expected[i] += bias_values[i % kColumns];
      d_expected[i % kColumns] += dy_values[i];
    }
    std::vector<uint8_t> bits;
    const Operand before = dbias;
    for (int threads : {1, 2, 7}) {
      dbias = before;
      TestContext context(threads, BiasBackwardWorkspaceBytes(kTokens, kColumns));
      BiasBackward({.tokens = kTokens, .columns = kColumns, .dy = dy.data(), .dbias = dbias.data()},
                   dtype, context.get());
      ExpectClose(dbias, d_expected, "dbias", 32);
      if (threads == 1) bits = dbias.bytes();
      EXPECT_EQ(dbias.bytes(), bits) << threads << " threads";
    }
    TestContext context(2);
    BiasForward({.tokens = kTokens, .columns = kColumns, .bias = bias.data(), .y = y.data()}, dtype,
                context.get());
    ExpectClose(y, y_expected, "y", 2);
  }
}

// The scalar rounding against its definition: of the two neighbours the nearer one, and the even
// one of two equally near.
TEST(Bf16, RoundsToNearestEven) {
  EXPECT_EQ(ToBf16(1.0f).bits, 0x3f80);
  EXPECT_EQ(ToBf16(1.0f + 0x1p-8f).bits, 0x3f80);            // a tie, down to even
  EXPECT_EQ(ToBf16(1.0f + 0x1p-7f + 0x1p-8f).bits, 0x3f82);  // a tie, up to even
  EXPECT_EQ(ToBf16(1.0f + 0x1p-8f + 0x1p-20f).bits, 0x3f81);
  EXPECT_EQ(ToBf16(std::numeric_limits<float>::max()).bits, 0x7f80);  // rounds to infinity
  EXPECT_EQ(ToBf16(-std::numeric_limits<float>::infinity()).bits, 0xff80);
  EXPECT_EQ(ToBf16(std::numeric_limits<float>::denorm_min()).bits, 0);
  EXPECT_EQ(ToBf16(0x1p-130f).bits, 0x0008);                          // a denormal stays
  EXPECT_EQ(ToBf16(std::bit_cast<float>(0x7f800001u)).bits, 0x7fc0);  // quiet, not infinity
  EXPECT_EQ(ToBf16(std::bit_cast<float>(0xffffffffu)).bits, 0xffff);
}

// Vector code against the scalar conversion, on a sample of all bit patterns and all special ones.
TEST(Cast, AgreesWithTheScalarConversionBitForBit) {
  std::vector<uint32_t> patterns = {0x7f7fffff, 0x7f800000, 0x7f800001, 0x7fbfffff, 0xff800000,
                                    0xffc00000, 0xffffffff, 0x00000001, 0x80000000, 0x007fffff};
  for (uint64_t bits = 0; bits < (uint64_t{1} << 32); bits += 9973) {
    patterns.push_back(static_cast<uint32_t>(bits));
  }
  const int64_t n = static_cast<int64_t>(patterns.size());
  Operand from(DType::kF32, n), to(DType::kBF16, n), back(DType::kF32, n);
  std::memcpy(from.data(), patterns.data(), n * sizeof(uint32_t));
  TestContext context(2);
  Cast({.elements = n,
        .source = from.data(),
        .source_dtype = DType::kF32,
        .destination = to.data(),
        .destination_dtype = DType::kBF16},
       context.get());
  Cast({.elements = n,
        .source = to.data(),
        .source_dtype = DType::kBF16,
        .destination = back.data(),
        .destination_dtype = DType::kF32},
       context.get());
  const auto* rounded = static_cast<const Bf16*>(to.data());
  const auto* widened = static_cast<const float*>(back.data());
  for (int64_t i = 0; i < n; ++i) {
    ASSERT_EQ(rounded[i].bits, ToBf16(std::bit_cast<float>(patterns[i])).bits) << patterns[i];
    ASSERT_EQ(std::bit_cast<uint32_t>(widened[i]), uint32_t{rounded[i].bits} << 16);
  }
}

TEST(CopyColumns, CopiesTheSliceOnly) {
  const Operand x = Operand::Random(DType::kBF16, 5 * 9, 1);
  Operand y(DType::kBF16, 5 * 7);
  TestContext context;
  CopyColumns({.tokens = 5,
               .columns = 3,
               .x = x.data(),
               .x_stride = 9,
               .x_column = 4,
               .y = y.data(),
               .y_stride = 7,
               .y_column = 2},
              DType::kBF16, context.get());
  for (int64_t row = 0; row < 5; ++row) {
    for (int64_t column = 0; column < 7; ++column) {
      const bool copied = column >= 2 && column < 5;
      const double expected = copied ? x.Values()[row * 9 + column + 2] : 0;
      EXPECT_EQ(y.Values()[row * 7 + column], expected);
    }
  }
}

TEST(Zero, ClearsExactlyTheBytes) {
  std::vector<uint8_t> bytes(3'000'001, 7);
  TestContext context(2);
  Zero(bytes.data(), bytes.size() - 1, context.get());
  EXPECT_EQ(std::count(bytes.begin(), bytes.end(), 0), 3'000'000);
  EXPECT_EQ(bytes.back(), 7);
}

}  // namespace
}  // namespace planc::host
