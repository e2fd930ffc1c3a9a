#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/amx/reference.h"
#include "kernels/bf16.h"
#include "kernels/instruction_set.h"
#include "kernels/matmul.h"
#include "kernels/property_test.h"

namespace planc::host {
namespace {

class AmxMatmulTest : public testing::Test {
 protected:
  void SetUp() override {
    const absl::StatusOr<InstructionSet> set = DetectInstructionSet();
    ASSERT_TRUE(set.ok()) << set.status();
    if (*set < InstructionSet::kAmxBf16) GTEST_SKIP() << "this machine has no AMX for bf16";
  }
};

MatmulShape RandomShape(RandomCase& random) {
  MatmulShape s = {.m = random.Size(70), .n = random.Size(70), .k = random.Size(70)};
  if (random.Chance(0.1)) {
    // Several pieces of the depth.
    s = {.m = random.Size(40), .n = random.Size(40), .k = random.Between(300, 1000)};
  } else if (random.Chance(0.05)) {
    // Several blocks, and work for several threads.
    s = {.m = random.Between(250, 300), .n = random.Between(30, 600), .k = random.Size(100)};
  }
  s.transpose_a = random.Chance(0.5);
  s.transpose_b = random.Chance(0.5);
  s.accumulate = random.Chance(0.5);
  s.a = s.b = DType::kBF16;
  s.c = random.ElementType();
  return s;
}

struct AmxProblem {
  AmxProblem(RandomCase& random, const MatmulShape& given, ValueKind a_kind, ValueKind b_kind)
      : shape(given),
        a(random.Matrix(shape.a, shape.transpose_a ? shape.k : shape.m,
                        shape.transpose_a ? shape.m : shape.k, a_kind, true)),
        b(random.Matrix(shape.b, shape.transpose_b ? shape.n : shape.k,
                        shape.transpose_b ? shape.k : shape.n, b_kind, true)),
        c(random.Matrix(shape.c, shape.m, shape.n, ValueKind::kNormal, true)) {
    shape.lda = a.stride();
    shape.ldb = b.stride();
    shape.ldc = c.stride();
  }

  // With one, two and three threads: the same bits, and nothing written elsewhere.
  void Run() {
    ExpectReproducible(
        {&c}, [&](int) { return MatmulWorkspaceBytes(shape); },
        [&](KernelContext& context) {
          auto product = Matmul::Create(shape, context.threads, InstructionSet::kAmxBf16);
          ASSERT_TRUE(product.ok()) << product.status();
          ASSERT_EQ((*product)->implementation(), "amx");
          (*product)->Run(a.data(), b.data(), c.data(), context);
        });
  }

  float Left(int64_t i, int64_t p) const {
    return static_cast<float>(shape.transpose_a ? a.At(p, i) : a.At(i, p));
  }
  float Right(int64_t p, int64_t j) const {
    return static_cast<float>(shape.transpose_b ? b.At(j, p) : b.At(p, j));
  }

  // Element by element, as the tiles sum it: an fp32 C joins before the first tile, a bf16 C is
  // added to the finished sum.
  std::vector<float> Expected() const {
    std::vector<float> expected;
    for (int64_t i = 0; i < shape.m; ++i) {
      for (int64_t j = 0; j < shape.n; ++j) {
        const float before = shape.accumulate ? static_cast<float>(c.At(i, j)) : 0.0f;
        const bool is_float = shape.c == DType::kF32;
        float sum = TileSum(
            is_float ? before : 0.0f, shape.k, [&](int64_t p) { return Left(i, p); },
            [&](int64_t p) { return Right(p, j); });
        if (!is_float) sum = ToFloat(ToBf16(shape.accumulate ? before + sum : sum));
        expected.push_back(sum);
      }
    }
    return expected;
  }

  MatmulShape shape;
  StridedOperand a, b, c;
};

TEST_F(AmxMatmulTest, EveryElementIsWhatTheInstructionSaysInItsOrder) {
  ForEachCase(1, 250, [](RandomCase& random) {
    const ValueKind kinds[] = {ValueKind::kNormal, ValueKind::kWide, ValueKind::kEqual};
    const MatmulShape shape = RandomShape(random);
    AmxProblem p(random, shape, kinds[random.Between(0, 2)], kinds[random.Between(0, 2)]);
    SCOPED_TRACE(MatmulShapeText(p.shape));
    const std::vector<float> expected = p.Expected();
    p.Run();
    ExpectEquals(p.c, expected, "c");
  });
}

// Denormal operands count as zeros, overflow and NaNs follow IEEE arithmetic.
TEST_F(AmxMatmulTest, ExtremeOperands) {
  ForEachCase(1000, 100, [](RandomCase& random) {
    const ValueKind kinds[] = {ValueKind::kHuge, ValueKind::kNonFinite, ValueKind::kTiny};
    MatmulShape shape = RandomShape(random);
    AmxProblem p(random, shape, kinds[random.Between(0, 2)], ValueKind::kNormal);
    SCOPED_TRACE(MatmulShapeText(p.shape));
    const std::vector<float> expected = p.Expected();
    p.Run();
    ExpectEquals(p.c, expected, "c");
  });
}

TEST_F(AmxMatmulTest, NonFiniteOperandsSpoilTheirRowsAndColumnsAlone) {
  ForEachCase(2000, 80, [](RandomCase& random) {
    MatmulShape shape = RandomShape(random);
    shape.accumulate = false;
    AmxProblem p(random, shape, ValueKind::kNormal, ValueKind::kNormal);
    const int64_t row = random.Between(0, shape.m - 1), column = random.Between(0, shape.n - 1);
    const int64_t p_a = random.Between(0, shape.k - 1), p_b = random.Between(0, shape.k - 1);
    constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
    p.a.Set(shape.transpose_a ? p_a : row, shape.transpose_a ? row : p_a, kNan);
    p.b.Set(shape.transpose_b ? column : p_b, shape.transpose_b ? p_b : column, kNan);
    SCOPED_TRACE(MatmulShapeText(p.shape));
    p.Run();
    for (int64_t i = 0; i < shape.m; ++i) {
      for (int64_t j = 0; j < shape.n; ++j) {
        ASSERT_EQ(std::isnan(p.c.At(i, j)), i == row || j == column) << i << ", " << j;
      }
    }
  });
}

// Shapes of a step: more rows, columns and depth than one block of each, on several threads.
TEST_F(AmxMatmulTest, LargeProducts) {
  const int64_t sizes[][3] = {{300, 1700, 40}, {270, 40, 1000}, {600, 66, 340}, {33, 1600, 340}};
  uint64_t seed = 3000;
  for (const auto& size : sizes) {
    for (const DType c : {DType::kF32, DType::kBF16}) {
      RandomCase random(++seed);
      MatmulShape shape = {.m = size[0], .n = size[1], .k = size[2]};
      shape.transpose_a = random.Chance(0.5);
      shape.transpose_b = random.Chance(0.5);
      shape.accumulate = random.Chance(0.5);
      shape.a = shape.b = DType::kBF16;
      shape.c = c;
      AmxProblem p(random, shape, ValueKind::kNormal, ValueKind::kNormal);
      SCOPED_TRACE(MatmulShapeText(p.shape));
      const std::vector<float> expected = p.Expected();
      p.Run();
      ExpectEquals(p.c, expected, "c");
    }
  }
}

}  // namespace
}  // namespace planc::host
