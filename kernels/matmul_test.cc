#include "kernels/matmul.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/aligned_buffer.h"
#include "kernels/bf16.h"
#include "kernels/reference_matmul.h"
#include "kernels/tested_instruction_set.h"

namespace planc::host {
namespace {

using ::testing::HasSubstr;

// Matrices in storage form beside their exact values.
struct Operand {
  std::vector<float> values;
  std::vector<Bf16> halves;
  DType dtype;

  void* data() { return dtype == DType::kF32 ? static_cast<void*>(values.data()) : halves.data(); }
  double at(int64_t i) const { return dtype == DType::kF32 ? values[i] : ToFloat(halves[i]); }
  std::vector<double> Exact() const {
    std::vector<double> exact(values.size());
    for (size_t i = 0; i < exact.size(); ++i) exact[i] = at(i);
    return exact;
  }
};

Operand RandomOperand(int64_t count, DType dtype, std::mt19937& generator) {
  std::normal_distribution<float> normal;
  Operand operand;
  operand.dtype = dtype;
  for (int64_t i = 0; i < count; ++i) {
    operand.values.push_back(normal(generator));
    operand.halves.push_back(ToBf16(operand.values.back()));
  }
  return operand;
}

MatmulShape Filled(MatmulShape s) {
  if (s.lda == 0) s.lda = s.transpose_a ? s.m : s.k;
  if (s.ldb == 0) s.ldb = s.transpose_b ? s.k : s.n;
  if (s.ldc == 0) s.ldc = s.n;
  return s;
}

struct Problem {
  explicit Problem(const MatmulShape& given, uint32_t seed = 1) : shape(Filled(given)) {
    std::mt19937 generator(seed);
    a = RandomOperand((shape.transpose_a ? shape.k : shape.m) * shape.lda, shape.a, generator);
    b = RandomOperand((shape.transpose_b ? shape.n : shape.k) * shape.ldb, shape.b, generator);
    c = RandomOperand(shape.m * shape.ldc, shape.c, generator);
  }

  void Run(int threads, MatmulImplementation implementation) {
    auto matmul = Matmul::Create(shape, threads, TestedInstructionSet(), implementation);
    ASSERT_TRUE(matmul.ok()) << matmul.status();
    AlignedBuffer workspace((*matmul)->workspace_bytes());
    KernelContext context{workspace.data(), workspace.size(), threads, TestedInstructionSet()};
    (*matmul)->Run(a.data(), b.data(), c.data(), context);
    EXPECT_TRUE(workspace.GuardIntact()) << MatmulShapeText(shape);
  }

  MatmulShape shape;
  Operand a, b, c;
};

// Runs `shape` and compares every element with the reference in double. Columns between n and ldc
// must stay as they were.
void ExpectMatches(const MatmulShape& shape, MatmulImplementation implementation) {
  Problem problem(shape);
  const MatmulShape& s = problem.shape;
  std::vector<double> expected = problem.c.Exact();
  ReferenceMatmul<double>(s, problem.a.Exact(), problem.b.Exact(), expected);
  problem.Run(1, implementation);
  const double rounding = s.c == DType::kBF16 ? 1.0 / 256 : 1e-6;
  const double tolerance = 1e-6 * (4.0 + std::sqrt(static_cast<double>(s.k)) * 4.0);
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_NEAR(problem.c.at(i), expected[i], tolerance + rounding * std::abs(expected[i]))
        << MatmulShapeText(s) << " element " << i / s.ldc << ", " << i % s.ldc;
  }
}

void ForAllVariants(MatmulShape shape, MatmulImplementation implementation,
                    const std::vector<DType>& operand_types) {
  for (int variant = 0; variant < 8; ++variant) {
    shape.transpose_a = (variant & 1) != 0;
    shape.transpose_b = (variant & 2) != 0;
    shape.accumulate = (variant & 4) != 0;
    for (DType operands : operand_types) {
      for (DType c : {DType::kF32, DType::kBF16}) {
        if (operands == DType::kF32 && c == DType::kBF16) continue;
        shape.a = shape.b = operands;
        shape.c = c;
        ExpectMatches(shape, implementation);
      }
    }
  }
}

const std::vector<DType> kBothTypes = {DType::kF32, DType::kBF16};

TEST(MatmulTest, AllTransposesTypesAndOddSizes) {
  const int64_t sizes[][3] = {{1, 1, 1},  {1, 17, 5},    {6, 16, 4},   {7, 15, 3},   {13, 33, 31},
                              {5, 1, 70}, {48, 64, 128}, {67, 50, 97}, {25, 130, 36}};
  for (const auto& size : sizes) {
    ForAllVariants({.m = size[0], .n = size[1], .k = size[2]}, MatmulImplementation::kPacked,
                   kBothTypes);
  }
}

TEST(MatmulTest, SizesThatNeedSeveralBlocks) {
  ForAllVariants({.m = 40, .n = 530, .k = 300}, MatmulImplementation::kPacked, kBothTypes);
  ForAllVariants({.m = 800, .n = 20, .k = 515}, MatmulImplementation::kPacked, kBothTypes);
}

TEST(MatmulTest, RandomShapes) {
  std::mt19937 generator(7);
  std::uniform_int_distribution<int64_t> size(1, 150);
  for (int i = 0; i < 12; ++i) {
    MatmulShape shape{.m = size(generator), .n = size(generator), .k = size(generator)};
    ForAllVariants(shape, MatmulImplementation::kPacked, kBothTypes);
  }
}

TEST(MatmulTest, OneDnnMatchesTheReference) {
  ForAllVariants({.m = 37, .n = 53, .k = 41}, MatmulImplementation::kOneDnn, {DType::kF32});
  ForAllVariants({.m = 1, .n = 17, .k = 300}, MatmulImplementation::kOneDnn, {DType::kF32});
}

TEST(MatmulTest, AutomaticMatchesTheReference) {
  ForAllVariants({.m = 37, .n = 53, .k = 41}, MatmulImplementation::kAutomatic, kBothTypes);
}

TEST(MatmulTest, ColumnSlicesLeaveTheirNeighboursAlone) {
  const MatmulShape slice{.m = 19, .n = 21, .k = 23, .lda = 40, .ldb = 50, .ldc = 60};
  ForAllVariants(slice, MatmulImplementation::kPacked, kBothTypes);
  ForAllVariants(slice, MatmulImplementation::kOneDnn, {DType::kF32});
}

TEST(MatmulTest, ResultDoesNotDependOnThreads) {
  for (DType type : kBothTypes) {
    const MatmulShape shape{.m = 131,
                            .n = 541,
                            .k = 300,
                            .transpose_b = true,
                            .a = type,
                            .b = type,
                            .c = type,
                            .accumulate = true};
    Problem one(shape), two(shape), five(shape);
    one.Run(1, MatmulImplementation::kPacked);
    two.Run(2, MatmulImplementation::kPacked);
    five.Run(5, MatmulImplementation::kPacked);
    const size_t bytes = one.c.values.size() * SizeOf(type);
    EXPECT_EQ(std::memcmp(one.c.data(), two.c.data(), bytes), 0);
    EXPECT_EQ(std::memcmp(one.c.data(), five.c.data(), bytes), 0);
  }
}

TEST(MatmulTest, PartOfARowHasTheBitsOfTheWholeRow) {
  // A rank that holds a slice of N or some of the rows computes the same numbers.
  Problem whole({.m = 40, .n = 96, .k = 300, .transpose_b = true});
  Problem part({.m = 11, .n = 7, .k = 300, .transpose_b = true});
  std::copy_n(whole.a.values.begin() + 29 * 300, 11 * 300, part.a.values.begin());
  std::copy_n(whole.b.values.begin() + 83 * 300, 7 * 300, part.b.values.begin());
  whole.Run(1, MatmulImplementation::kPacked);
  part.Run(1, MatmulImplementation::kPacked);
  for (int64_t i = 0; i < 11; ++i) {
    for (int64_t j = 0; j < 7; ++j) {
      EXPECT_EQ(part.c.values[i * 7 + j], whole.c.values[(29 + i) * 96 + 83 + j]);
    }
  }
}

TEST(MatmulTest, ExtremeValues) {
  const float infinity = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  Problem problem({.m = 8, .n = 20, .k = 9});
  problem.a.values[2 * 9 + 4] = nan;
  problem.a.values[5 * 9 + 1] = infinity;
  for (int64_t p = 0; p < 9; ++p) problem.a.values[7 * 9 + p] = 1e-42f;
  problem.Run(1, MatmulImplementation::kPacked);
  for (int64_t j = 0; j < 20; ++j) {
    EXPECT_TRUE(std::isfinite(problem.c.values[j]));
    EXPECT_TRUE(std::isnan(problem.c.values[2 * 20 + j]));
    EXPECT_TRUE(std::isinf(problem.c.values[5 * 20 + j]));
    EXPECT_LT(std::abs(problem.c.values[7 * 20 + j]), 1e-40f);
  }
}

TEST(MatmulTest, Bf16ResultIsRoundedOnce) {
  // 1 + 2^-9 + 2^-20: rounding the addends one by one would give 1.
  Problem problem({.m = 1,
                   .n = 1,
                   .k = 3,
                   .a = DType::kBF16,
                   .b = DType::kBF16,
                   .c = DType::kBF16,
                   .accumulate = true});
  const float products[] = {0x1p-8f, 0x1p-9f, 0x1p-9f};
  for (int i = 0; i < 3; ++i) {
    problem.a.halves[i] = ToBf16(products[i]);
    problem.b.halves[i] = ToBf16(1.0f);
  }
  problem.c.halves[0] = ToBf16(1.0f);
  problem.Run(1, MatmulImplementation::kPacked);
  EXPECT_EQ(ToFloat(problem.c.halves[0]), 1.0f + 0x1p-7f);
}

TEST(MatmulTest, WorkspaceIsBoundedAndIndependentOfTheMachine) {
  const MatmulShape large{.m = 1 << 20, .n = 1 << 18, .k = 1 << 14};
  EXPECT_EQ(MatmulWorkspaceBytes(large), 16 << 20);
  EXPECT_EQ(MatmulWorkspaceBytes({.m = 12, .n = 16, .k = 4}), 192 + 256 + 768);
}

TEST(MatmulTest, RefusesWhatItCannotDo) {
  EXPECT_THAT(
      Matmul::Create({.m = 0, .n = 1, .k = 1}, 1, TestedInstructionSet()).status().message(),
      HasSubstr("at least 1"));
  EXPECT_THAT(Matmul::Create({.m = 4, .n = 4, .k = 4, .lda = 3}, 1, TestedInstructionSet())
                  .status()
                  .message(),
              HasSubstr("(3, 4, 4) is shorter than its row"));
  EXPECT_FALSE(
      Matmul::Create({.m = 4, .n = 4, .k = 4, .b = DType::kBF16}, 1, TestedInstructionSet()).ok());
  EXPECT_FALSE(
      Matmul::Create({.m = 4, .n = 4, .k = 4, .c = DType::kBF16}, 1, TestedInstructionSet()).ok());
  EXPECT_FALSE(Matmul::Create({.m = 4, .n = 4, .k = 4}, 0, TestedInstructionSet()).ok());
}

}  // namespace
}  // namespace planc::host
