#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "kernels/property_test.h"
#include "kernels/rope.h"

namespace planc::host {
namespace {

// A slice of heads to rotate, and its table.
struct RopeProblem {
  explicit RopeProblem(RandomCase& random)
      : heads(random.Between(1, 5)),
        head_dim(2 * random.Size(65)),
        tokens(random.Chance(0.0625) ? 3 * 16384 / (heads * head_dim) + 3 : random.Size(70)),
        sequence(random.Between(1, 80)),
        first_row(random.Between(0, 200)),
        direction(random.Chance(0.5) ? 1 : -1),
        dtype(random.ElementType()),
        x(random.Matrix(dtype, tokens, heads * head_dim, random.Kind(), true)),
        y(random.Matrix(dtype, tokens, heads * head_dim, ValueKind::kNormal, true)),
        cosine(DType::kF32, sequence, head_dim / 2),
        sine(DType::kF32, sequence, head_dim / 2) {
    FillRopeTable(random.Between(0, 4000), sequence, head_dim, random.Chance(0.5) ? 1e4 : 5e5, {},
                  cosine.floats(), sine.floats());
  }

  RopeArgs Args() {
    return {.tokens = tokens,
            .heads = heads,
            .head_dim = head_dim,
            .sequence = sequence,
            .first_row = first_row,
            .direction = direction,
            .x = x.base_data(),
            .x_stride = x.stride(),
            .x_column = x.lead(),
            .y = y.base_data(),
            .y_stride = y.stride(),
            .y_column = y.lead(),
            .cosine = cosine.floats(),
            .sine = sine.floats()};
  }

  std::vector<Bounded> Expected() const {
    std::vector<Bounded> expected(tokens * heads * head_dim);
    const int64_t half = head_dim / 2;
    for (int64_t t = 0; t < tokens; ++t) {
      const int64_t angle = (first_row + t) % sequence;
      for (int64_t column = 0; column < heads * head_dim; ++column) {
        const int64_t i = column % head_dim;
        const Bounded c = cosine.At(angle, i % half), s = direction * sine.At(angle, i % half);
        const Bounded self = x.At(t, column);
        const Bounded other = x.At(t, i < half ? column + half : column - half);
        expected[t * heads * head_dim + column] =
            i < half ? self * c - other * s : self * c + other * s;
      }
    }
    return expected;
  }

  int64_t heads, head_dim, tokens, sequence, first_row;
  int direction;
  DType dtype;
  StridedOperand x, y, cosine, sine;
};

TEST(RopeProperty, AgreesWithTheReference) {
  ForEachCase(1, 400, [](RandomCase& random) {
    RopeProblem p(random);
    ExpectReproducible({&p.y}, [&](KernelContext& context) { Rope(p.Args(), p.dtype, context); });
    ExpectAgrees(p.y, p.Expected(), "y");
  });
}

TEST(RopeProperty, InPlaceHasTheSameBits) {
  ForEachCase(1000, 150, [](RandomCase& random) {
    RopeProblem p(random);
    StridedOperand over_x = p.x;
    ExpectReproducible({&p.y}, [&](KernelContext& context) { Rope(p.Args(), p.dtype, context); });
    RopeArgs args = p.Args();
    args.x = args.y = over_x.base_data();
    args.y_stride = args.x_stride;
    args.y_column = args.x_column;
    ExpectReproducible({&over_x}, [&](KernelContext& context) { Rope(args, p.dtype, context); });
    const std::vector<double> values = p.y.Values();
    ExpectEquals(over_x, std::vector<float>(values.begin(), values.end()), "y over x");
  });
}

// A rotation keeps the length of every pair: rotating there and back gives x again.
TEST(RopeProperty, BackwardUndoesForward) {
  ForEachCase(2000, 150, [](RandomCase& random) {
    RopeProblem p(random);
    p.dtype = DType::kF32;
    p.x = random.Matrix(p.dtype, p.tokens, p.heads * p.head_dim, ValueKind::kWide, true);
    p.y = StridedOperand(p.dtype, p.tokens, p.heads * p.head_dim);
    ExpectReproducible({&p.y}, [&](KernelContext& context) { Rope(p.Args(), p.dtype, context); });
    StridedOperand back = p.y;
    RopeArgs args = p.Args();
    args.direction = -p.direction;
    args.x = args.y = back.base_data();
    args.x_stride = args.y_stride;
    args.x_column = args.y_column;
    ExpectReproducible({&back}, [&](KernelContext& context) { Rope(args, p.dtype, context); });
    for (int64_t t = 0; t < p.tokens; ++t) {
      for (int64_t column = 0; column < p.heads * p.head_dim; ++column) {
        const int64_t half = p.head_dim / 2;
        const int64_t partner = column % p.head_dim < half ? column + half : column - half;
        // Two rotations, each with a few roundings of its result and of the table.
        const double size = std::hypot(p.x.At(t, column), p.x.At(t, partner));
        ASSERT_NEAR(back.At(t, column), p.x.At(t, column), 16 * 0x1p-24 * size);
      }
    }
  });
}

TEST(RopeProperty, TableMatchesLongDouble) {
  ForEachCase(3000, 200, [](RandomCase& random) {
    const int64_t head_dim = 2 * random.Size(128), positions = random.Size(20);
    const int64_t first = random.Between(0, 100000), half = head_dim / 2;
    const double theta = random.Chance(0.5) ? 1e4 : 5e5;
    StridedOperand cosine = random.Matrix(DType::kF32, positions, half, ValueKind::kNormal);
    StridedOperand sine = random.Matrix(DType::kF32, positions, half, ValueKind::kNormal);
    FillRopeTable(first, positions, head_dim, theta, {}, cosine.floats(), sine.floats());
    EXPECT_TRUE(cosine.GapsIntact() && sine.GapsIntact());
    for (int64_t row = 0; row < positions; ++row) {
      for (int64_t i = 0; i < half; ++i) {
        const long double angle =
            static_cast<long double>(first + row) *
            std::pow(static_cast<long double>(theta),
                     -2.0L * static_cast<long double>(i) / static_cast<long double>(head_dim));
        // The angle is rounded to double several times; then one rounding to float.
        const double error = static_cast<double>(angle) * 0x1p-49 + 0x1p-24;
        ASSERT_NEAR(cosine.At(row, i), static_cast<double>(std::cos(angle)), error);
        ASSERT_NEAR(sine.At(row, i), static_cast<double>(std::sin(angle)), error);
      }
    }
  });
}

}  // namespace
}  // namespace planc::host
