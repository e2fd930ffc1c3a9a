#include <gtest/gtest.h>

#include <algorithm>

#include "kernels/bf16.h"
#include "kernels/embedding.h"
#include "kernels/property_test.h"

namespace planc::host {
namespace {

float Rounded(DType dtype, float value) {
  return dtype == DType::kF32 ? value : ToFloat(ToBf16(value));
}

// The sum of two stored elements, formed in fp32 and rounded once: the same bits as the kernel's.
void AddTo(StridedOperand& table, int64_t row, int64_t column, double value) {
  const float sum = static_cast<float>(table.At(row, column)) + static_cast<float>(value);
  table.Set(row, column, Rounded(table.dtype(), sum));
}

std::vector<float> Floats(const StridedOperand& operand) {
  const std::vector<double> values = operand.Values();
  return std::vector<float>(values.begin(), values.end());
}

// Enough work for several threads in every sixteenth case.
int64_t Tokens(RandomCase& random, int64_t hidden) {
  return random.Chance(0.0625) ? 3 * 16384 / hidden + 3 : random.Size(60);
}

struct EmbeddingProblem {
  explicit EmbeddingProblem(RandomCase& random)
      : hidden(random.Size(200)),
        tokens(Tokens(random, hidden)),
        vocab_rows(random.Size(40)),
        vocab_begin(random.Chance(0.5) ? 0 : random.Between(1, 500)),
        dtype(random.ElementType()),
        table(random.Matrix(dtype, vocab_rows, hidden, random.Kind())),
        x(random.Matrix(dtype, tokens, hidden, random.Kind())),
        dtable(random.Matrix(random.ElementType(), vocab_rows, hidden, ValueKind::kNormal)) {
    for (int64_t t = 0; t < tokens; ++t) {
      token_ids.push_back(static_cast<int32_t>(
          std::max<int64_t>(0, vocab_begin + random.Between(-3, vocab_rows + 2))));
    }
  }

  // The row of the local table, or -1.
  int64_t Local(int64_t token) const {
    const int64_t row = token_ids[token] - vocab_begin;
    return row >= 0 && row < vocab_rows ? row : -1;
  }

  int64_t hidden, tokens, vocab_rows, vocab_begin;
  DType dtype;
  StridedOperand table, x, dtable;
  std::vector<int32_t> token_ids;
};

TEST(EmbeddingProperty, ForwardCopiesRows) {
  ForEachCase(1, 400, [](RandomCase& random) {
    EmbeddingProblem p(random);
    ExpectReproducible({&p.x}, [&](KernelContext& context) {
      EmbeddingForward({.tokens = p.tokens,
                        .hidden = p.hidden,
                        .vocab_rows = p.vocab_rows,
                        .vocab_begin = p.vocab_begin,
                        .token_ids = p.token_ids.data(),
                        .table = p.table.data(),
                        .x = p.x.data()},
                       p.dtype, context);
    });
    std::vector<float> expected;
    for (int64_t t = 0; t < p.tokens; ++t) {
      for (int64_t i = 0; i < p.hidden; ++i) {
        const int64_t row = p.Local(t);
        expected.push_back(row < 0 ? 0 : static_cast<float>(p.table.At(row, i)));
      }
    }
    ExpectEquals(p.x, expected, "x");
  });
}

TEST(EmbeddingProperty, BackwardAddsRowsInOrder) {
  ForEachCase(1000, 400, [](RandomCase& random) {
    EmbeddingProblem p(random);
    StridedOperand expected = p.dtable;
    ExpectReproducible({&p.dtable}, [&](KernelContext& context) {
      EmbeddingBackward({.tokens = p.tokens,
                         .hidden = p.hidden,
                         .vocab_rows = p.vocab_rows,
                         .vocab_begin = p.vocab_begin,
                         .token_ids = p.token_ids.data(),
                         .dx = p.x.data(),
                         .dtable = p.dtable.data(),
                         .dtable_dtype = p.dtable.dtype()},
                        p.dtype, context);
    });
    for (int64_t t = 0; t < p.tokens; ++t) {
      const int64_t row = p.Local(t);
      for (int64_t i = 0; row >= 0 && i < p.hidden; ++i) AddTo(expected, row, i, p.x.At(t, i));
    }
    ExpectEquals(p.dtable, Floats(expected), "dtable");
  });
}

struct PositionProblem {
  explicit PositionProblem(RandomCase& random)
      : hidden(random.Size(200)),
        tokens(Tokens(random, hidden)),
        sequence(random.Size(30)),
        first_row(random.Between(0, 100)),
        first_position(random.Between(0, 10)),
        dtype(random.ElementType()),
        table(random.Matrix(dtype, first_position + sequence, hidden, random.Kind())),
        x(random.Matrix(dtype, tokens, hidden, random.Kind())),
        dtable(random.Matrix(random.ElementType(), first_position + sequence, hidden,
                             ValueKind::kNormal)) {}

  int64_t Position(int64_t row) const { return first_position + (first_row + row) % sequence; }

  int64_t hidden, tokens, sequence, first_row, first_position;
  DType dtype;
  StridedOperand table, x, dtable;
};

TEST(PositionProperty, ForwardAddsRows) {
  ForEachCase(2000, 400, [](RandomCase& random) {
    PositionProblem p(random);
    StridedOperand expected = p.x;
    ExpectReproducible({&p.x}, [&](KernelContext& context) {
      PositionForward({.tokens = p.tokens,
                       .hidden = p.hidden,
                       .sequence = p.sequence,
                       .first_row = p.first_row,
                       .first_position = p.first_position,
                       .table = p.table.data(),
                       .x = p.x.data()},
                      p.dtype, context);
    });
    for (int64_t t = 0; t < p.tokens; ++t) {
      for (int64_t i = 0; i < p.hidden; ++i) AddTo(expected, t, i, p.table.At(p.Position(t), i));
    }
    ExpectEquals(p.x, Floats(expected), "x");
  });
}

TEST(PositionProperty, BackwardAddsRowsInOrder) {
  ForEachCase(3000, 400, [](RandomCase& random) {
    PositionProblem p(random);
    StridedOperand expected = p.dtable;
    ExpectReproducible({&p.dtable}, [&](KernelContext& context) {
      PositionBackward({.tokens = p.tokens,
                        .hidden = p.hidden,
                        .sequence = p.sequence,
                        .first_row = p.first_row,
                        .first_position = p.first_position,
                        .dx = p.x.data(),
                        .dtable = p.dtable.data(),
                        .dtable_dtype = p.dtable.dtype()},
                       p.dtype, context);
    });
    for (int64_t t = 0; t < p.tokens; ++t) {
      for (int64_t i = 0; i < p.hidden; ++i) AddTo(expected, p.Position(t), i, p.x.At(t, i));
    }
    ExpectEquals(p.dtable, Floats(expected), "dtable");
  });
}

}  // namespace
}  // namespace planc::host
