#include "kernels/embedding.h"

#include <gtest/gtest.h>

#include "kernels/reference_embedding.h"
#include "kernels/test_data.h"

namespace planc::host {
namespace {

// Ids of a vocabulary of 50, of which the local table holds [20, 40); several repeat.
std::vector<int32_t> TokenIds(int64_t tokens) {
  std::vector<int32_t> ids(tokens);
  for (int64_t t = 0; t < tokens; ++t) ids[t] = static_cast<int32_t>((t * 17 + t * t) % 50);
  return ids;
}
constexpr int64_t kVocabRows = 20, kVocabBegin = 20;

TEST(Embedding, MatchesTheReference) {
  for (DType dtype : ElementTypes()) {
    for (int64_t hidden : {1, 31, 64, 200}) {
      constexpr int64_t kTokens = 90;
      SCOPED_TRACE(testing::Message() << DTypeName(dtype) << " hidden " << hidden);
      const std::vector<int32_t> ids = TokenIds(kTokens);
      const Operand table = Operand::Random(dtype, kVocabRows * hidden, 1);
      Operand x = Operand::Random(dtype, kTokens * hidden, 2);
      TestContext context(2);
      EmbeddingForward({.tokens = kTokens,
                        .hidden = hidden,
                        .vocab_rows = kVocabRows,
                        .vocab_begin = kVocabBegin,
                        .token_ids = ids.data(),
                        .table = table.data(),
                        .x = x.data()},
                       dtype, context.get());
      std::vector<double> x_expected(kTokens * hidden);
      reference::Embedding(ids.data(), table.Values().data(), kTokens, hidden, kVocabRows,
                           kVocabBegin, x_expected.data());
      EXPECT_EQ(x.Values(), x_expected);

      const Operand dx = Operand::Random(dtype, kTokens * hidden, 3);
      Operand dtable = Operand::Random(DType::kF32, kVocabRows * hidden, 4);
      std::vector<double> expected = dtable.Values();
      reference::EmbeddingBackward(ids.data(), dx.Values().data(), kTokens, hidden, kVocabRows,
                                   kVocabBegin, expected.data());
      EmbeddingBackward({.tokens = kTokens,
                         .hidden = hidden,
                         .vocab_rows = kVocabRows,
                         .vocab_begin = kVocabBegin,
                         .token_ids = ids.data(),
                         .dx = dx.data(),
                         .dtable = dtable.data()},
                        dtype, context.get());
      ExpectClose(dtable, expected, "dtable");
    }
  }
}

TEST(Embedding, BackwardIntoBf16RoundsEachAddition) {
  const std::vector<int32_t> ids = {0, 0};
  const Operand dx(DType::kF32, std::vector<double>{1.0, 0x1p-9});
  Operand dtable(DType::kBF16, 1);
  TestContext context;
  EmbeddingBackward({.tokens = 2,
                     .hidden = 1,
                     .vocab_rows = 1,
                     .token_ids = ids.data(),
                     .dx = dx.data(),
                     .dtable = dtable.data(),
                     .dtable_dtype = DType::kBF16},
                    DType::kF32, context.get());
  EXPECT_EQ(dtable.Values()[0], 1.0);
}

TEST(Embedding, GradientBitsDoNotDependOnThreads) {
  constexpr int64_t kTokens = 600, kHidden = 300;
  const std::vector<int32_t> ids = TokenIds(kTokens);
  const Operand dx = Operand::Random(DType::kBF16, kTokens * kHidden, 3);
  std::vector<uint8_t> bytes;
  for (int threads : {1, 2, 5}) {
    Operand dtable(DType::kF32, 50 * kHidden);
    TestContext context(threads);
    EmbeddingBackward({.tokens = kTokens,
                       .hidden = kHidden,
                       .vocab_rows = 50,
                       .token_ids = ids.data(),
                       .dx = dx.data(),
                       .dtable = dtable.data()},
                      DType::kBF16, context.get());
    if (threads == 1) bytes = dtable.bytes();
    EXPECT_EQ(dtable.bytes(), bytes) << threads << " threads";
  }
}

// Two sequences of 6, cut for sequence parallelism: the local rows start at global row 4.
TEST(Position, FollowsTheGlobalRow) {
  constexpr int64_t kTokens = 7, kHidden = 35, kSequence = 6, kFirstRow = 4, kFirstPosition = 2;
  for (DType dtype : ElementTypes()) {
    const Operand table = Operand::Random(dtype, (kSequence + kFirstPosition) * kHidden, 1);
    const Operand dx = Operand::Random(dtype, kTokens * kHidden, 3);
    Operand x = Operand::Random(dtype, kTokens * kHidden, 2);
    Operand dtable = Operand::Random(DType::kF32, (kSequence + kFirstPosition) * kHidden, 4);
    std::vector<double> x_expected = x.Values(), d_expected = dtable.Values();
    const int64_t positions[kTokens] = {6, 7, 2, 3, 4, 5, 6};
    for (int64_t t = 0; t < kTokens; ++t) {
      for (int64_t i = 0; i < kHidden; ++i) {
        x_expected[t * kHidden + i] += table.Values()[positions[t] * kHidden + i];
        d_expected[positions[t] * kHidden + i] += dx.Values()[t * kHidden + i];
      }
    }
    TestContext context(2);
    PositionForward({.tokens = kTokens,
                     .hidden = kHidden,
                     .sequence = kSequence,
                     .first_row = kFirstRow,
                     .first_position = kFirstPosition,
                     .table = table.data(),
                     .x = x.data()},
                    dtype, context.get());
    PositionBackward({.tokens = kTokens,
                      .hidden = kHidden,
                      .sequence = kSequence,
                      .first_row = kFirstRow,
                      .first_position = kFirstPosition,
                      .dx = dx.data(),
                      .dtable = dtable.data()},
                     dtype, context.get());
    ExpectClose(x, x_expected, "x");
    ExpectClose(dtable, d_expected, "dtable");
  }
}

}  // namespace
}  // namespace planc::host
