#include <gtest/gtest.h>

#include <bit>
#include <cstring>

#include "kernels/bf16.h"
#include "kernels/elementwise.h"
#include "kernels/property_test.h"
#include "kernels/tested_instruction_set.h"

namespace planc::host {
namespace {

// What storing an fp32 result leaves.
float Stored(DType dtype, float value) {
  return dtype == DType::kF32 ? value : ToFloat(ToBf16(value));
}

float FloatAt(const StridedOperand& operand, int64_t row, int64_t column) {
  return static_cast<float>(operand.At(row, column));
}

std::vector<float> Floats(const StridedOperand& operand) {
  const std::vector<double> values = operand.Values();
  return std::vector<float>(values.begin(), values.end());
}

// Enough elements for several threads in every sixteenth case.
int64_t Elements(RandomCase& random) {
  return random.Chance(0.0625) ? 3 * 16384 + random.Size(200) : random.Size(300);
}
int64_t Rows(RandomCase& random, int64_t columns) {
  return random.Chance(0.0625) ? 3 * 16384 / columns + 3 : random.Size(70);
}

TEST(AddProperty, HasTheBitsOfOneRounding) {
  ForEachCase(1, 400, [](RandomCase& random) {
    const int64_t n = Elements(random);
    const DType dtype = random.ElementType();
    StridedOperand a = random.Vector(dtype, n, random.Kind());
    StridedOperand b = random.Vector(dtype, n, random.Kind());
    StridedOperand c(dtype, 1, n, 0, random.Between(0, 5));
    std::vector<float> expected;
    for (int64_t i = 0; i < n; ++i) {
      expected.push_back(Stored(dtype, FloatAt(a, 0, i) + FloatAt(b, 0, i)));
    }
    ExpectReproducible({&c}, [&](KernelContext& context) {
      Add({.elements = n, .a = a.data(), .b = b.data(), .c = c.data()}, dtype, context);
    });
    ExpectEquals(c, expected, "a + b");
    StridedOperand& in_place = random.Chance(0.5) ? a : b;
    ExpectReproducible({&in_place}, [&](KernelContext& context) {
      Add({.elements = n, .a = a.data(), .b = b.data(), .c = in_place.data()}, dtype, context);
    });
    ExpectEquals(in_place, expected, "in place");
  });
}

TEST(BiasProperty, ForwardHasTheBitsOfOneRounding) {
  ForEachCase(1000, 300, [](RandomCase& random) {
    const int64_t columns = random.Size(200), tokens = Rows(random, columns);
    const DType dtype = random.ElementType();
    StridedOperand bias = random.Vector(dtype, columns, random.Kind());
    StridedOperand y = random.Matrix(dtype, tokens, columns, random.Kind());
    std::vector<float> expected;
    for (int64_t t = 0; t < tokens; ++t) {
      for (int64_t i = 0; i < columns; ++i) {
        expected.push_back(Stored(dtype, FloatAt(y, t, i) + FloatAt(bias, 0, i)));
      }
    }
    ExpectReproducible({&y}, [&](KernelContext& context) {
      BiasForward({.tokens = tokens, .columns = columns, .bias = bias.data(), .y = y.data()}, dtype,
                  context);
    });
    ExpectEquals(y, expected, "y");
  });
}

TEST(BiasProperty, BackwardSumsRows) {
  ForEachCase(2000, 300, [](RandomCase& random) {
    const int64_t columns = random.Size(200), tokens = Rows(random, columns);
    const DType dtype = random.ElementType();
    StridedOperand dy = random.Matrix(dtype, tokens, columns, random.Kind());
    StridedOperand dbias = random.Vector(random.ElementType(), columns, random.Kind());
    std::vector<Bounded> expected(columns);
    for (int64_t i = 0; i < columns; ++i) {
      for (int64_t t = 0; t < tokens; ++t) expected[i] += dy.At(t, i);
      expected[i] += dbias.At(0, i);
    }
    ExpectReproducible(
        {&dbias}, [&](int) { return BiasBackwardWorkspaceBytes(tokens, columns); },
        [&](KernelContext& context) {
          BiasBackward({.tokens = tokens,
                        .columns = columns,
                        .dy = dy.data(),
                        .dbias = dbias.data(),
                        .dbias_dtype = dbias.dtype()},
                       dtype, context);
        });
    ExpectAgrees(dbias, expected, "dbias");
  });
}

TEST(CastProperty, HasTheBitsOfOneRounding) {
  ForEachCase(3000, 400, [](RandomCase& random) {
    const int64_t n = Elements(random);
    StridedOperand source = random.Vector(random.ElementType(), n, random.Kind());
    StridedOperand destination(random.ElementType(), 1, n, 0, random.Between(0, 5));
    ExpectReproducible({&destination}, [&](KernelContext& context) {
      Cast({.elements = n,
            .source = source.data(),
            .source_dtype = source.dtype(),
            .destination = destination.data(),
            .destination_dtype = destination.dtype()},
           context);
    });
    std::vector<float> expected;
    for (int64_t i = 0; i < n; ++i) {
      expected.push_back(Stored(destination.dtype(), FloatAt(source, 0, i)));
    }
    ExpectEquals(destination, expected, "cast");
  });
}

// Random patterns, NaNs of any payload among them, and those around every tie of the rounding.
TEST(CastProperty, RoundsEveryPatternAsToBf16Does) {
  ForEachCase(4000, 50, [](RandomCase& random) {
    std::vector<uint32_t> patterns;
    for (int i = 0; i < 2000; ++i) {
      const auto upper = static_cast<uint32_t>(random.Between(0, 0xffff)) << 16;
      const uint32_t lower[] = {0, 1, 0x7fff, 0x8000, 0x8001, 0xffff};
      patterns.push_back(upper | lower[random.Between(0, 5)]);
      patterns.push_back(static_cast<uint32_t>(random.Between(0, 0xffffffff)));
    }
    const auto n = static_cast<int64_t>(patterns.size());
    std::vector<uint16_t> halves(n);
    KernelContext context{nullptr, 0, 1, TestedInstructionSet()};
    Cast({.elements = n,
          .source = patterns.data(),
          .source_dtype = DType::kF32,
          .destination = halves.data(),
          .destination_dtype = DType::kBF16},
         context);
    for (int64_t i = 0; i < n; ++i) {
      ASSERT_EQ(halves[i], ToBf16(std::bit_cast<float>(patterns[i])).bits) << patterns[i];
    }
    std::vector<uint32_t> back(n);
    Cast({.elements = n,
          .source = halves.data(),
          .source_dtype = DType::kBF16,
          .destination = back.data(),
          .destination_dtype = DType::kF32},
         context);
    for (int64_t i = 0; i < n; ++i) ASSERT_EQ(back[i], uint32_t{halves[i]} << 16);
  });
}

TEST(AccumulateProperty, HasTheBitsOfOneRounding) {
  ForEachCase(5000, 400, [](RandomCase& random) {
    const int64_t n = Elements(random);
    StridedOperand source = random.Vector(random.ElementType(), n, random.Kind());
    StridedOperand destination = random.Vector(random.ElementType(), n, random.Kind());
    std::vector<float> expected;
    for (int64_t i = 0; i < n; ++i) {
      expected.push_back(
          Stored(destination.dtype(), FloatAt(destination, 0, i) + FloatAt(source, 0, i)));
    }
    ExpectReproducible({&destination}, [&](KernelContext& context) {
      Accumulate({.elements = n,
                  .source = source.data(),
                  .source_dtype = source.dtype(),
                  .destination = destination.data(),
                  .destination_dtype = destination.dtype()},
                 context);
    });
    ExpectEquals(destination, expected, "sum");
  });
}

TEST(ScaleProperty, HasTheBitsOfOneRounding) {
  ForEachCase(6000, 300, [](RandomCase& random) {
    const int64_t n = Elements(random);
    StridedOperand x = random.Vector(random.ElementType(), n, random.Kind());
    const float factor = static_cast<float>(random.Value(ValueKind::kWide));
    std::vector<float> expected;
    for (int64_t i = 0; i < n; ++i)
      expected.push_back(Stored(x.dtype(), FloatAt(x, 0, i) * factor));
    ExpectReproducible({&x}, [&](KernelContext& context) {
      Scale({.elements = n, .factor = factor, .x = x.data()}, x.dtype(), context);
    });
    ExpectEquals(x, expected, "scaled");
  });
}

TEST(CopyColumnsProperty, CopiesTheSliceAndNothingElse) {
  ForEachCase(7000, 300, [](RandomCase& random) {
    const int64_t columns = random.Size(130), tokens = Rows(random, columns);
    const DType dtype = random.ElementType();
    StridedOperand x = random.Matrix(dtype, tokens, columns, random.Kind(), true);
    StridedOperand y = random.Matrix(dtype, tokens, columns, random.Kind(), true);
    ExpectReproducible({&y}, [&](KernelContext& context) {
      CopyColumns({.tokens = tokens,
                   .columns = columns,
                   .x = x.base_data(),
                   .x_stride = x.stride(),
                   .x_column = x.lead(),
                   .y = y.base_data(),
                   .y_stride = y.stride(),
                   .y_column = y.lead()},
                  dtype, context);
    });
    ExpectEquals(y, Floats(x), "slice");
  });
}

TEST(ZeroProperty, ZeroesTheBytesAndNothingElse) {
  ForEachCase(8000, 100, [](RandomCase& random) {
    const int64_t n = random.Chance(0.05) ? (3 << 20) / 4 + 5 : random.Size(300);
    StridedOperand x = random.Vector(random.ElementType(), n, random.Kind());
    ExpectReproducible({&x}, [&](KernelContext& context) {
      Zero(x.data(), static_cast<size_t>(n) * SizeOf(x.dtype()), context);
    });
    ExpectEquals(x, std::vector<float>(n, 0.0f), "zeros");
  });
}

}  // namespace
}  // namespace planc::host
