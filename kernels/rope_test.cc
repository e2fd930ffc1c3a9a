#include "kernels/rope.h"

#include <gtest/gtest.h>

#include <cmath>

#include "kernels/reference_rope.h"
#include "kernels/test_data.h"

namespace planc::host {
namespace {

struct Case {
  int64_t tokens;
  int64_t heads;
  int64_t head_dim;
  int64_t sequence;
  int64_t first_row;
};
const Case kCases[] = {{8, 1, 2, 4, 0}, {13, 3, 18, 5, 3}, {40, 2, 64, 16, 0}, {6, 1, 128, 12, 6}};
constexpr double kTheta = 10000;

struct Table {
  Table(int64_t first, int64_t positions, int64_t head_dim, RopeScaling scaling = {})
      : cosine(positions * head_dim / 2), sine(positions * head_dim / 2) {
    FillRopeTable(first, positions, head_dim, kTheta, scaling, cosine.data(), sine.data());
  }
  std::vector<float> cosine;
  std::vector<float> sine;
};

TEST(Rope, MatchesTheReferenceAndLeavesOtherColumnsAlone) {
  for (DType dtype : ElementTypes()) {
    for (const Case& c : kCases) {
      SCOPED_TRACE(testing::Message() << DTypeName(dtype) << " head_dim " << c.head_dim);
      const int64_t stride = c.heads * c.head_dim + 5, column = 3;
      const Table table(0, c.sequence, c.head_dim);
      Operand x = Operand::Random(dtype, c.tokens * stride, 1);
      std::vector<double> expected = x.Values();
      const std::vector<double> before = expected;
      for (int64_t t = 0; t < c.tokens; ++t) {
        for (int64_t head = 0; head < c.heads; ++head) {
          const int64_t at = t * stride + column + head * c.head_dim;
          reference::RopeHead(&before[at], (c.first_row + t) % c.sequence, c.head_dim, kTheta, -1,
                              &expected[at]);
        }
      }
      TestContext context(2);
      Rope({.tokens = c.tokens,
            .heads = c.heads,
            .head_dim = c.head_dim,
            .sequence = c.sequence,
            .first_row = c.first_row,
            .direction = -1,
            .x = x.data(),
            .x_stride = stride,
            .x_column = column,
            .y = x.data(),
            .y_stride = stride,
            .y_column = column,
            .cosine = table.cosine.data(),
            .sine = table.sine.data()},
           dtype, context.get());
      ExpectClose(x, expected, "y");
    }
  }
}

TEST(Rope, BackwardUndoesForward) {
  const Table table(0, 16, 64);
  const Operand x = Operand::Random(DType::kF32, 32 * 64, 1);
  Operand y(DType::kF32, 32 * 64), z(DType::kF32, 32 * 64);
  TestContext context;
  RopeArgs args = {.tokens = 32,
                   .heads = 1,
                   .head_dim = 64,
                   .sequence = 16,
                   .x = x.data(),
                   .x_stride = 64,
                   .y = y.data(),
                   .y_stride = 64,
                   .cosine = table.cosine.data(),
                   .sine = table.sine.data()};
  Rope(args, DType::kF32, context.get());
  EXPECT_NE(y.bytes(), x.bytes());
  args.direction = -1;
  args.x = y.data();
  args.y = z.data();
  Rope(args, DType::kF32, context.get());
  ExpectClose(z, x.Values(), "x");
}

// A rotation is orthogonal: its gradient is the rotation back, by finite differences.
TEST(Rope, ReferenceGradientIsTheOppositeRotation) {
  const std::vector<double> x = RandomValues(8, 1), dy = RandomValues(8, 2);
  std::vector<double> dx(8);
  reference::RopeHead(dy.data(), 7, 8, kTheta, -1, dx.data());
  const auto loss = [&](const std::vector<double>& at) {
    std::vector<double> y(8);
    reference::RopeHead(at.data(), 7, 8, kTheta, +1, y.data());
    return Dot(y, dy);
  };
  ExpectGradient(loss, x, dx, "dx");
}

TEST(RopeTable, PiecesEqualTheWhole) {
  const Table whole(0, 32, 16), tail(20, 12, 16);
  for (size_t i = 0; i < tail.cosine.size(); ++i) {
    EXPECT_EQ(tail.cosine[i], whole.cosine[20 * 8 + i]);
    EXPECT_EQ(tail.sine[i], whole.sine[20 * 8 + i]);
  }
}

// Frequencies of Llama 3.1: the fastest are kept, the slowest divided by the factor.
TEST(RopeTable, ScalesLongWavelengthsOnly) {
  const RopeScaling scaling = {.factor = 8, .original_positions = 64};
  const Table plain(1, 1, 64), scaled(1, 1, 64, scaling);
  EXPECT_EQ(scaled.sine.front(), plain.sine.front());
  const double slowest = std::pow(kTheta, -62.0 / 64);
  EXPECT_FLOAT_EQ(scaled.sine.back(), static_cast<float>(std::sin(slowest / 8)));
  // Between the two: wavelengths are 64 / 4 .. 64 / 1 positions; i = 10 has frequency
  // 10000^(-20/64).
  const double frequency = std::pow(kTheta, -20.0 / 64);
  const double turns = 64 * frequency / (2 * std::acos(-1.0));
  ASSERT_LT(turns, 1.0);
  const double middle = std::pow(kTheta, -12.0 / 64);
  const double middle_turns = 64 * middle / (2 * std::acos(-1.0));
  ASSERT_GT(middle_turns, 1.0);
  ASSERT_LT(middle_turns, 4.0);
  const double kept = (middle_turns - 1) / 3;
  EXPECT_FLOAT_EQ(scaled.sine[6],
                  static_cast<float>(std::sin((1 - kept) * middle / 8 + kept * middle)));
}

}  // namespace
}  // namespace planc::host
