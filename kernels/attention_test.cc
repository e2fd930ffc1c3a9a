#include "kernels/attention.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/aligned_buffer.h"
#include "kernels/bf16.h"
#include "kernels/reference_attention.h"
#include "kernels/tested_instruction_set.h"

namespace planc::host {
namespace {

using ::testing::HasSubstr;

std::string Text(const AttentionShape& s) {
  return absl::StrCat("batch ", s.batch, " sequence ", s.sequence, " heads ", s.query_heads, "/",
                      s.kv_heads, " dim ", s.head_dim);
}

AttentionShape Shape(int64_t batch, int64_t sequence, int64_t query_heads, int64_t kv_heads,
                     int64_t head_dim) {
  AttentionShape shape{batch, sequence, query_heads, kv_heads, head_dim, 0.0f};
  shape.scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(head_dim)));
  return shape;
}

// Inputs and outputs of one forward and backward pass, in elements of type T.
template <typename T>
struct Pass {
  explicit Pass(const AttentionShape& s, float magnitude = 1.0f, uint32_t seed = 3) : shape(s) {
    std::mt19937 generator(seed);
    std::normal_distribution<float> normal(0.0f, magnitude);
    const int64_t tokens = s.batch * s.sequence;
    qkv.resize(tokens * (s.query_heads + 2 * s.kv_heads) * s.head_dim);
    d_o.resize(tokens * s.query_heads * s.head_dim);
    for (T& x : qkv) x = FromFloat<T>(normal(generator));
    for (T& x : d_o) x = FromFloat<T>(normal(generator) / magnitude);
    o.resize(d_o.size());
    lse.resize(tokens * s.query_heads);
    dqkv.resize(qkv.size());
  }

  static DType dtype() { return std::is_same_v<T, float> ? DType::kF32 : DType::kBF16; }

  void Run(int threads = 1) {
    ASSERT_TRUE(CheckAttentionShape(shape).ok());
    AlignedBuffer forward(AttentionForwardWorkspaceBytes(shape, threads));
    KernelContext context{forward.data(), forward.size(), threads, TestedInstructionSet()};
    AttentionForward({shape, qkv.data(), o.data(), lse.data()}, dtype(), context);
    EXPECT_TRUE(forward.GuardIntact());
    AlignedBuffer backward(AttentionBackwardWorkspaceBytes(shape, threads));
    context = {backward.data(), backward.size(), threads};
    AttentionBackward({shape, qkv.data(), o.data(), lse.data(), d_o.data(), dqkv.data()}, dtype(),
                      context);
    EXPECT_TRUE(backward.GuardIntact());
  }

  AttentionShape shape;
  std::vector<T> qkv, o, d_o, dqkv;
  std::vector<float> lse;
};

template <typename T>
std::vector<double> Exact(const std::vector<T>& values) {
  std::vector<double> exact;
  for (const T& value : values) exact.push_back(ToFloat(value));
  return exact;
}

template <typename T>
void ExpectClose(const std::vector<T>& actual, const std::vector<double>& expected,
                 double tolerance, const std::string& what) {
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_NEAR(ToFloat(actual[i]), expected[i], tolerance * (1.0 + std::abs(expected[i])))
        << what << " element " << i;
  }
}

template <typename T>
void ExpectMatchesReference(const AttentionShape& shape) {
  Pass<T> pass(shape);
  pass.Run();
  const std::vector<double> qkv = Exact(pass.qkv);
  const ReferenceAttention<double> reference(shape, qkv);
  std::vector<double> o, lse, dqkv;
  reference.Forward(o, lse);
  reference.Backward(Exact(pass.d_o), dqkv);
  const bool is_float = std::is_same_v<T, float>;
  const double rounding = is_float ? 0.0 : 1.0 / 256;
  const std::string text = Text(shape);
  ExpectClose(pass.o, o, 2e-6 + rounding, "o of " + text);
  ExpectClose(pass.lse, lse, 2e-6, "lse of " + text);
  // delta uses the rounded o, so that its error joins every gradient of a logit.
  ExpectClose(pass.dqkv, dqkv, 2e-5 + 4 * rounding, "dqkv of " + text);
}

TEST(AttentionTest, MatchesTheReference) {
  for (const AttentionShape& shape :
       {Shape(1, 1, 1, 1, 2), Shape(2, 7, 2, 1, 6), Shape(1, 48, 1, 1, 16), Shape(1, 64, 3, 3, 8),
        Shape(1, 65, 4, 2, 64), Shape(3, 33, 4, 4, 18), Shape(1, 130, 6, 2, 32),
        Shape(1, 200, 2, 2, 80), Shape(1, 97, 8, 1, 128), Shape(1, 50, 2, 1, 256)}) {
    ExpectMatchesReference<float>(shape);
    ExpectMatchesReference<Bf16>(shape);
  }
}

TEST(AttentionTest, EverySequenceLengthAroundTheBlocks) {
  for (int64_t sequence = 1; sequence <= 132; ++sequence) {
    ExpectMatchesReference<float>(Shape(1, sequence, 1, 1, 10));
  }
}

TEST(AttentionTest, ReferenceGradientMatchesFiniteDifferences) {
  const AttentionShape shape = Shape(2, 5, 4, 2, 4);
  Pass<float> inputs(shape);
  std::vector<double> qkv = Exact(inputs.qkv);
  const std::vector<double> d_o = Exact(inputs.d_o);
  const ReferenceAttention<double> reference(shape, qkv);
  std::vector<double> dqkv, o, lse;
  reference.Backward(d_o, dqkv);
  const auto loss = [&] {
    reference.Forward(o, lse);
    double sum = 0;
    for (size_t i = 0; i < o.size(); ++i) sum += o[i] * d_o[i];
    return sum;
  };
  constexpr double kStep = 1e-5;
  for (size_t i = 0; i < qkv.size(); ++i) {
    const double value = qkv[i];
    qkv[i] = value + kStep;
    const double above = loss();
    qkv[i] = value - kStep;
    const double below = loss();
    qkv[i] = value;
    EXPECT_NEAR(dqkv[i], (above - below) / (2 * kStep), 1e-8) << i;
  }
}

TEST(AttentionTest, ScaleDefaultsToTheInverseRootOfTheHeadDimension) {
  Pass<float> given(Shape(1, 20, 2, 1, 64)), defaulted(Shape(1, 20, 2, 1, 64));
  defaulted.shape.scale = 0.0f;
  given.Run();
  defaulted.Run();
  EXPECT_EQ(given.o, defaulted.o);
  EXPECT_EQ(given.dqkv, defaulted.dqkv);
}

TEST(AttentionTest, ResultDoesNotDependOnThreads) {
  Pass<float> one(Shape(3, 70, 4, 2, 32)), many(Shape(3, 70, 4, 2, 32)), most = many;
  one.Run(1);
  many.Run(4);
  most.Run(9);
  EXPECT_EQ(one.o, many.o);
  EXPECT_EQ(one.lse, many.lse);
  EXPECT_EQ(one.dqkv, many.dqkv);
  EXPECT_EQ(one.dqkv, most.dqkv);
}

TEST(AttentionTest, HeadsHaveTheSameBitsWhereverTheyAre) {
  // A tensor-parallel rank that holds the second key/value head alone computes the same numbers.
  const AttentionShape whole_shape = Shape(1, 40, 4, 2, 16);
  const AttentionShape part_shape = Shape(1, 40, 2, 1, 16);
  Pass<float> whole(whole_shape), part(part_shape);
  for (int64_t row = 0; row < 40; ++row) {
    const float* from = &whole.qkv[row * 8 * 16];
    float* to = &part.qkv[row * 4 * 16];
    std::copy_n(from + 2 * 16, 2 * 16, to);
    std::copy_n(from + 5 * 16, 16, to + 2 * 16);
    std::copy_n(from + 7 * 16, 16, to + 3 * 16);
    std::copy_n(&whole.d_o[(row * 4 + 2) * 16], 2 * 16, &part.d_o[row * 2 * 16]);
  }
  whole.Run();
  part.Run();
  for (int64_t row = 0; row < 40; ++row) {
    for (int64_t i = 0; i < 32; ++i) {
      EXPECT_EQ(part.o[row * 32 + i], whole.o[row * 64 + 32 + i]);
      EXPECT_EQ(part.dqkv[row * 64 + i], whole.dqkv[row * 128 + 32 + i]);
    }
    for (int64_t i = 0; i < 16; ++i) {
      EXPECT_EQ(part.dqkv[row * 64 + 32 + i], whole.dqkv[row * 128 + 80 + i]);
      EXPECT_EQ(part.dqkv[row * 64 + 48 + i], whole.dqkv[row * 128 + 112 + i]);
    }
  }
}

TEST(AttentionTest, LargeLogitsStayFinite) {
  for (const float magnitude : {30.0f, 1e4f, 1e8f}) {
    Pass<float> pass(Shape(1, 100, 2, 1, 16), magnitude);
    pass.Run();
    for (float x : pass.o) ASSERT_TRUE(std::isfinite(x)) << magnitude;
    for (float x : pass.lse) ASSERT_TRUE(std::isfinite(x)) << magnitude;
    for (float x : pass.dqkv) ASSERT_TRUE(std::isfinite(x)) << magnitude;
  }
}

TEST(AttentionTest, SaturatedSoftmaxPicksTheLargestLogit) {
  // Keys are 1000 * position, queries 1: each query attends to itself alone.
  const AttentionShape shape = Shape(1, 90, 1, 1, 2);
  Pass<float> pass(shape);
  for (int64_t row = 0; row < 90; ++row) {
    for (int64_t i = 0; i < 2; ++i) {
      pass.qkv[row * 6 + i] = 1.0f;
      pass.qkv[row * 6 + 2 + i] = 1000.0f * static_cast<float>(row);
    }
  }
  pass.Run();
  for (int64_t row = 0; row < 90; ++row) {
    EXPECT_EQ(pass.o[row * 2], pass.qkv[row * 6 + 4]);
    EXPECT_EQ(pass.dqkv[row * 6 + 4], pass.d_o[row * 2]);
  }
}

TEST(AttentionTest, KeysOfMinusInfinityGetNoWeight) {
  // Logits of -inf in the first block must not poison later ones.
  const AttentionShape shape = Shape(1, 100, 1, 1, 2);
  Pass<float> pass(shape);
  for (int64_t row = 0; row < 100; ++row) {
    pass.qkv[row * 6] = pass.qkv[row * 6 + 1] = 1.0f;
    if (row < 70) pass.qkv[row * 6 + 2] = -std::numeric_limits<float>::infinity();
  }
  pass.Run();
  EXPECT_TRUE(std::isnan(pass.o[0]));  // No key with weight: 0/0, as in the reference.
  for (int64_t row = 70; row < 100; ++row) {
    EXPECT_TRUE(std::isfinite(pass.o[row * 2])) << row;
  }
  EXPECT_EQ(pass.o[70 * 2], pass.qkv[70 * 6 + 4]);
}

TEST(AttentionTest, NonFiniteInputsReachTheOutputs) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (int64_t part = 0; part < 3; ++part) {
    const AttentionShape shape = Shape(1, 80, 2, 2, 8);
    Pass<float> pass(shape);
    const int64_t row = 50;
    const int64_t stride = 6 * 8;
    pass.qkv[row * stride + (2 * part + 1) * 8 + 3] = nan;  // Head 1 of q, k or v.
    pass.Run();
    for (int64_t i = 0; i < 80; ++i) {
      EXPECT_TRUE(std::isfinite(pass.o[i * 16])) << "head 0 is untouched, row " << i;
      const bool hit = part == 0 ? i == row : i >= row;
      const bool finite = std::isfinite(pass.o[i * 16 + 8 + 3]);
      // Rows just before may share the block of the poisoned one.
      if (hit || i < row - 11) {
        EXPECT_EQ(finite, !hit) << "part " << part << " row " << i;
      }
    }
    EXPECT_TRUE(std::isnan(pass.dqkv[row * stride + 8 + 3]));
  }
}

TEST(AttentionTest, WorkspaceGrowsWithTheSequenceAndNotItsSquare) {
  const int64_t once = AttentionBackwardWorkspaceBytes(Shape(1, 4096, 8, 8, 64), 4);
  const int64_t twice = AttentionBackwardWorkspaceBytes(Shape(1, 8192, 8, 8, 64), 4);
  EXPECT_LT(twice, 2 * once + 1);
  EXPECT_LT(once, int64_t{25} << 20);
  EXPECT_EQ(AttentionForwardWorkspaceBytes(Shape(1, 64, 8, 2, 64), 16),
            AttentionForwardWorkspaceBytes(Shape(1, 64, 8, 2, 64), 2));
}

TEST(AttentionTest, RefusesImpossibleShapes) {
  EXPECT_THAT(CheckAttentionShape(Shape(1, 8, 6, 4, 64)).message(),
              HasSubstr("query_heads 6 is not a multiple of kv_heads 4"));
  EXPECT_THAT(CheckAttentionShape(Shape(1, 8, 4, 4, 63)).message(), HasSubstr("head_dim 63"));
  EXPECT_THAT(CheckAttentionShape(Shape(1, 8, 4, 4, 258)).message(), HasSubstr("head_dim 258"));
  EXPECT_FALSE(CheckAttentionShape(Shape(0, 8, 4, 4, 64)).ok());
}

}  // namespace
}  // namespace planc::host
