#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "kernels/aligned_buffer.h"
#include "kernels/matmul.h"
#include "kernels/property_test.h"
#include "kernels/tested_instruction_set.h"

namespace planc::host {
namespace {

// Random sizes: mostly small, some with more depth than one piece, some with work for several
// threads.
MatmulShape RandomShape(RandomCase& random) {
  MatmulShape s;
  if (random.Chance(0.05)) {
    s = {.m = random.Between(90, 140), .n = random.Between(90, 140), .k = random.Between(90, 140)};
  } else if (random.Chance(0.1)) {
    s = {.m = random.Size(20), .n = random.Size(20), .k = random.Between(250, 600)};
  } else if (random.Chance(0.1)) {
    const int64_t length = random.Between(500, 900);
    const bool tall = random.Chance(0.5);
    s = {.m = tall ? length : random.Size(9),
         .n = tall ? random.Size(9) : length,
         .k = random.Size(20)};
  } else {
    s = {.m = random.Size(70), .n = random.Size(70), .k = random.Size(70)};
  }
  s.transpose_a = random.Chance(0.5);
  s.transpose_b = random.Chance(0.5);
  s.accumulate = random.Chance(0.5);
  s.a = s.b = random.ElementType();
  s.c = s.a == DType::kF32 ? DType::kF32 : random.ElementType();
  return s;
}

// A product with operands of random strides and starts.
struct MatmulProblem {
  MatmulProblem(RandomCase& random, const MatmulShape& given, ValueKind a_kind, ValueKind b_kind)
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

  // Computes c with the packed kernel, and expects the same bits whatever repeats it.
  void RunPacked() {
    ExpectReproducible(
        {&c}, [&](int) { return MatmulWorkspaceBytes(shape); },
        [&](KernelContext& context) {
          auto product = Matmul::Create(shape, context.threads, context.instruction_set,
                                        MatmulImplementation::kPacked);
          ASSERT_TRUE(product.ok()) << product.status();
          (*product)->Run(a.data(), b.data(), c.data(), context);
        });
  }

  // Every element summed in double. fp32 sums of k products and the old element, in any order and
  // with or without fused operations, err by at most k + 1 units of the sum of absolute values:
  // each of them meets at most that many roundings. A product may lose half a denormal.
  std::vector<Bounded> Expected() const {
    const std::vector<double> as = a.Values(), bs = b.Values(), cs = c.Values();
    const int64_t a_row = shape.transpose_a ? 1 : shape.k;
    const int64_t a_depth = shape.transpose_a ? shape.m : 1;
    const int64_t b_column = shape.transpose_b ? shape.k : 1;
    const int64_t b_depth = shape.transpose_b ? 1 : shape.n;
    std::vector<Bounded> expected;
    for (int64_t i = 0; i < shape.m; ++i) {
      for (int64_t j = 0; j < shape.n; ++j) {
        double sum = shape.accumulate ? cs[i * shape.n + j] : 0;
        double magnitude = std::fabs(sum);
        for (int64_t p = 0; p < shape.k; ++p) {
          const double product = as[i * a_row + p * a_depth] * bs[j * b_column + p * b_depth];
          sum += product;
          if (std::isfinite(product)) magnitude += std::fabs(product);
        }
        // The finite terms may overflow by themselves, to an infinity of either sign.
        if (magnitude > std::numeric_limits<float>::max() && !std::isnan(sum)) {
          expected.push_back(Bounded::Unknown());
          continue;
        }
        const auto terms = static_cast<double>(shape.k + 1);
        const double error = terms * (0x1p-24 * magnitude * 1.01 + 0x1p-150);
        expected.push_back(Bounded::Sum(sum, error, magnitude));
      }
    }
    return expected;
  }

  MatmulShape shape;
  StridedOperand a, b, c;
};

std::string ShapeText(const MatmulShape& s) {
  return MatmulShapeText(s) + " strides " + std::to_string(s.lda) + ", " + std::to_string(s.ldb) +
         ", " + std::to_string(s.ldc);
}

TEST(MatmulProperty, PackedAgreesWithTheReference) {
  ForEachCase(1, 700, [](RandomCase& random) {
    const MatmulShape shape = RandomShape(random);
    const ValueKind a_kind = random.Kind();
    // Two huge or two tiny operands would only overflow or vanish.
    const bool is_extreme = a_kind == ValueKind::kHuge || a_kind == ValueKind::kTiny;
    MatmulProblem p(random, shape, a_kind, is_extreme ? ValueKind::kNormal : random.Kind());
    SCOPED_TRACE(ShapeText(p.shape));
    const std::vector<Bounded> expected = p.Expected();
    p.RunPacked();
    ExpectAgrees(p.c, expected, "c");
  });
}

// The result of a oneDNN kernel may depend on the threads. Those for bf16 flush denormals.
TEST(MatmulProperty, EveryImplementationAgreesWithTheReference) {
  std::map<std::string, int> runs;
  ForEachCase(10000, 400, [&](RandomCase& random) {
    const MatmulShape shape = RandomShape(random);
    const ValueKind kind = random.Chance(0.3) ? ValueKind::kWide : ValueKind::kNormal;
    MatmulProblem p(random, shape, kind, random.Chance(0.2) ? ValueKind::kNonFinite : kind);
    SCOPED_TRACE(ShapeText(p.shape));
    const int threads = static_cast<int>(random.Between(1, 3));
    const auto implementation =
        random.Chance(0.7) ? MatmulImplementation::kOneDnn : MatmulImplementation::kAutomatic;
    auto product = Matmul::Create(p.shape, threads, TestedInstructionSet(), implementation);
    if (implementation == MatmulImplementation::kOneDnn &&
        absl::IsUnimplemented(product.status())) {
      return;
    }
    ASSERT_TRUE(product.ok()) << product.status();
    ++runs[(*product)->implementation()];
    const std::vector<Bounded> expected = p.Expected();
    AlignedBuffer workspace((*product)->workspace_bytes());
    KernelContext context{workspace.data(), workspace.size(), threads, TestedInstructionSet()};
    (*product)->Run(p.a.data(), p.b.data(), p.c.data(), context);
    EXPECT_TRUE(workspace.GuardIntact());
    ExpectAgrees(p.c, expected, (*product)->implementation());
  });
  for (const auto& [implementation, count] : runs) RecordProperty(implementation, count);
  EXPECT_GT(runs.size(), 1U) << "oneDNN took none of the products";
}

// A row of A and a column of B decide their row and column of C, whatever stands elsewhere.
TEST(MatmulProperty, NonFiniteOperandsSpoilTheirRowsAndColumnsAlone) {
  ForEachCase(20000, 200, [](RandomCase& random) {
    MatmulShape shape = RandomShape(random);
    shape.accumulate = false;
    MatmulProblem p(random, shape, ValueKind::kNormal, ValueKind::kNormal);
    const int64_t row = random.Between(0, shape.m - 1), column = random.Between(0, shape.n - 1);
    const int64_t p_a = random.Between(0, shape.k - 1), p_b = random.Between(0, shape.k - 1);
    constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
    p.a.Set(shape.transpose_a ? p_a : row, shape.transpose_a ? row : p_a, kNan);
    p.b.Set(shape.transpose_b ? column : p_b, shape.transpose_b ? p_b : column, kNan);
    SCOPED_TRACE(ShapeText(p.shape));
    p.RunPacked();
    for (int64_t i = 0; i < shape.m; ++i) {
      for (int64_t j = 0; j < shape.n; ++j) {
        ASSERT_EQ(std::isnan(p.c.At(i, j)), i == row || j == column) << i << ", " << j;
      }
    }
  });
}

}  // namespace
}  // namespace planc::host
