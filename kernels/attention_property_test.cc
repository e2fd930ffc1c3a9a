#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "kernels/attention.h"
#include "kernels/property_test.h"

namespace planc::host {
namespace {

AttentionShape RandomShape(RandomCase& random) {
  AttentionShape s;
  s.batch = random.Between(1, 3);
  s.kv_heads = random.Between(1, 3);
  s.query_heads = s.kv_heads * random.Between(1, 3);
  s.sequence = random.Size(140);
  // The reference costs batch * heads * sequence^2 * head_dim.
  const int64_t pairs = s.batch * s.query_heads * s.sequence * s.sequence;
  s.head_dim = 2 * random.Size(std::clamp<int64_t>(60000 / pairs, 1, 128));
  s.scale = random.Chance(0.5) ? 0 : static_cast<float>(random.Value(ValueKind::kNormal) / 4);
  return s;
}

std::string ShapeText(const AttentionShape& s) {
  return "batch " + std::to_string(s.batch) + " sequence " + std::to_string(s.sequence) +
         " heads " + std::to_string(s.query_heads) + "/" + std::to_string(s.kv_heads) + " dim " +
         std::to_string(s.head_dim) + " scale " + std::to_string(s.scale);
}

// Inputs and outputs of both passes.
struct AttentionProblem {
  AttentionProblem(RandomCase& random, const AttentionShape& s, ValueKind kind)
      : shape(s),
        dtype(random.ElementType()),
        tokens(s.batch * s.sequence),
        scale(s.scale != 0 ? s.scale : 1 / std::sqrt(static_cast<double>(s.head_dim))),
        qkv(random.Matrix(dtype, tokens, (s.query_heads + 2 * s.kv_heads) * s.head_dim, kind)),
        d_o(random.Matrix(dtype, tokens, s.query_heads * s.head_dim, kind)),
        o(dtype, tokens, s.query_heads * s.head_dim, 0, random.Between(0, 5)),
        lse(DType::kF32, s.batch * s.query_heads, s.sequence),
        dqkv(dtype, tokens, qkv.columns(), 0, random.Between(0, 5)) {}

  void Forward() {
    ExpectReproducible(
        {&o, &lse}, [&](int threads) { return AttentionForwardWorkspaceBytes(shape, threads); },
        [&](KernelContext& context) {
          AttentionForward({shape, qkv.data(), o.data(), lse.floats()}, dtype, context);
        });
  }
  void Backward() {
    ExpectReproducible(
        {&dqkv}, [&](int threads) { return AttentionBackwardWorkspaceBytes(shape, threads); },
        [&](KernelContext& context) {
          AttentionBackward({shape, qkv.data(), o.data(), lse.floats(), d_o.data(), dqkv.data()},
                            dtype, context);
        });
  }

  int64_t Group() const { return shape.query_heads / shape.kv_heads; }
  // First columns of a query head, and of the key and value head that it reads.
  int64_t QueryAt(int64_t head) const { return head * shape.head_dim; }
  int64_t KeyAt(int64_t head) const {
    return (shape.query_heads + head / Group()) * shape.head_dim;
  }
  int64_t ValueAt(int64_t head) const { return KeyAt(head) + shape.kv_heads * shape.head_dim; }

  AttentionShape shape;
  DType dtype;
  int64_t tokens;
  double scale;
  StridedOperand qkv, d_o, o, lse, dqkv;
};

// The formulas of kernels/attention.h, one query at a time.
class BoundedAttention {
 public:
  explicit BoundedAttention(const AttentionProblem& p)
      : p_(p),
        dim_(p.shape.head_dim),
        stride_(p.qkv.columns()),
        output_stride_(p.o.columns()),
        qkv_(p.qkv.Values()),
        d_o_(p.d_o.Values()),
        o_(p.o.Values()) {}

  void CheckForward() {
    std::vector<Bounded> o(p_.tokens * output_stride_), lse(p_.tokens * p_.shape.query_heads);
    ForEachQuery([&](int64_t batch, int64_t head, int64_t query) {
      const int64_t first = batch * p_.shape.sequence, row = first + query;
      std::vector<Bounded> weights = Logits(first, head, query);
      const Bounded maximum = *std::max_element(weights.begin(), weights.end());
      Bounded sum;
      for (Bounded& weight : weights) {
        weight = exp(weight - maximum);
        sum += weight;
      }
      for (int64_t i = 0; i < dim_; ++i) {
        const double* values = &qkv_[first * stride_ + p_.ValueAt(head) + i];
        o[row * output_stride_ + p_.QueryAt(head) + i] =
            BoundedDot(query + 1, weights.data(), 1, values, stride_) / sum;
      }
      lse[(batch * p_.shape.query_heads + head) * p_.shape.sequence + query] = maximum + log(sum);
    });
    ExpectAgrees(p_.o, o, "o");
    ExpectAgrees(p_.lse, lse, "lse");
  }

  // From the o and lse that the kernel was given.
  void CheckBackward() {
    std::vector<Bounded> dqkv(p_.tokens * stride_);
    ForEachQuery([&](int64_t batch, int64_t head, int64_t query) {
      AddQuery(batch * p_.shape.sequence, head, query,
               p_.lse.At(batch * p_.shape.query_heads + head, query), dqkv);
    });
    ExpectAgrees(p_.dqkv, dqkv, "dqkv");
  }

 private:
  template <typename Body>
  void ForEachQuery(const Body& body) {
    for (int64_t batch = 0; batch < p_.shape.batch; ++batch) {
      for (int64_t head = 0; head < p_.shape.query_heads; ++head) {
        for (int64_t query = 0; query < p_.shape.sequence; ++query) body(batch, head, query);
      }
    }
  }

  // The query's logits over keys 0 to `query` of the sequence that starts at row `first`.
  std::vector<Bounded> Logits(int64_t first, int64_t head, int64_t query) const {
    std::vector<Bounded> logits;
    const double* q = &qkv_[(first + query) * stride_ + p_.QueryAt(head)];
    for (int64_t j = 0; j <= query; ++j) {
      const double* k = &qkv_[(first + j) * stride_ + p_.KeyAt(head)];
      logits.push_back(BoundedDot(dim_, q, 1, k, 1) * Bounded::Rounded(p_.scale));
    }
    return logits;
  }

  // What one query adds to the gradients.
  void AddQuery(int64_t first, int64_t head, int64_t query, double lse,
                std::vector<Bounded>& dqkv) const {
    const int64_t row = first + query;
    const double* d_o = &d_o_[row * output_stride_ + p_.QueryAt(head)];
    const double* o = &o_[row * output_stride_ + p_.QueryAt(head)];
    const Bounded delta = BoundedDot(dim_, d_o, 1, o, 1);
    const std::vector<Bounded> logits = Logits(first, head, query);
    for (int64_t j = 0; j <= query; ++j) {
      const int64_t q_at = row * stride_ + p_.QueryAt(head);
      const int64_t k_at = (first + j) * stride_ + p_.KeyAt(head);
      const int64_t v_at = (first + j) * stride_ + p_.ValueAt(head);
      const Bounded weight = exp(logits[j] - Bounded(lse));
      const Bounded d_weight = BoundedDot(dim_, d_o, 1, &qkv_[v_at], 1);
      const Bounded d_logit = weight * (d_weight - delta) * Bounded::Rounded(p_.scale);
      for (int64_t i = 0; i < dim_; ++i) {
        dqkv[q_at + i] += d_logit * qkv_[k_at + i];
        dqkv[k_at + i] += d_logit * qkv_[q_at + i];
        dqkv[v_at + i] += weight * d_o[i];
      }
    }
  }

  const AttentionProblem& p_;
  int64_t dim_, stride_, output_stride_;
  std::vector<double> qkv_, d_o_, o_;
};

TEST(AttentionProperty, AgreesWithTheReference) {
  ForEachCase(1, 200, [](RandomCase& random) {
    const ValueKind kinds[] = {ValueKind::kNormal, ValueKind::kNormal, ValueKind::kTiny,
                               ValueKind::kEqual};
    AttentionProblem p(random, RandomShape(random), kinds[random.Between(0, 3)]);
    SCOPED_TRACE(ShapeText(p.shape));
    p.Forward();
    BoundedAttention(p).CheckForward();
    p.Backward();
    BoundedAttention(p).CheckBackward();
  });
}

// However large the logits: outputs are means of the values seen, the first of them alone in row 0.
TEST(AttentionProperty, OutputsStayWithinTheValues) {
  ForEachCase(1000, 150, [](RandomCase& random) {
    AttentionProblem p(random, RandomShape(random), ValueKind::kNormal);
    SCOPED_TRACE(ShapeText(p.shape));
    const double magnitude = std::exp2(static_cast<double>(random.Between(0, 30)));
    const int64_t values_at = (p.shape.query_heads + p.shape.kv_heads) * p.shape.head_dim;
    for (int64_t row = 0; row < p.tokens; ++row) {
      for (int64_t i = 0; i < values_at; ++i) p.qkv.Set(row, i, p.qkv.At(row, i) * magnitude);
    }
    p.Forward();
    p.Backward();
    // One rounding of the probabilities' sum and of each product and sum of the mean.
    const double slack = 1 + (p.dtype == DType::kF32 ? 0 : 0x1p-8) +
                         static_cast<double>(p.shape.sequence + 8) * 0x1p-23;
    for (int64_t row = 0; row < p.tokens; ++row) {
      const int64_t first = row / p.shape.sequence * p.shape.sequence;
      for (int64_t column = 0; column < p.o.columns(); ++column) {
        const int64_t head = column / p.shape.head_dim;
        const int64_t at = p.ValueAt(head) + column % p.shape.head_dim;
        double largest = 0;
        for (int64_t key = first; key <= row; ++key) {
          largest = std::max(largest, std::fabs(p.qkv.At(key, at)));
        }
        ASSERT_LE(std::fabs(p.o.At(row, column)), largest * slack) << "row " << row;
        if (row == first) {
          ASSERT_EQ(p.o.At(row, column), p.qkv.At(row, at));
        }
      }
    }
    for (const double value : p.dqkv.Values()) ASSERT_TRUE(std::isfinite(value));
  });
}

// A sequence with one NaN among its queries, keys or values, or an infinity: in a key, that would
// only decide who gets all the weight.
struct PoisonedAttention {
  enum class Part { kQuery, kKey, kValue };

  explicit PoisonedAttention(RandomCase& random)
      : clean(random, RandomShape(random), ValueKind::kNormal),
        poisoned(clean),
        part(static_cast<Part>(random.Between(0, 2))),
        batch(random.Between(0, clean.shape.batch - 1)),
        head(random.Between(0, clean.shape.query_heads - 1)),
        query(random.Between(0, clean.shape.sequence - 1)),
        element(random.Between(0, clean.shape.head_dim - 1)) {
    const int64_t columns[] = {clean.QueryAt(head), clean.KeyAt(head), clean.ValueAt(head)};
    const bool is_infinity = part != Part::kKey && random.Chance(0.5);
    poisoned.qkv.Set(batch * clean.shape.sequence + query,
                     columns[static_cast<int>(part)] + element,
                     is_infinity ? std::numeric_limits<double>::infinity()
                                 : std::numeric_limits<double>::quiet_NaN());
  }

  // Whether the output of a query depends on it: in all its elements, or in one.
  bool Reaches(int64_t at_batch, int64_t at_head, int64_t at_query, int64_t at_element) const {
    if (at_batch != batch) return false;
    if (part == Part::kQuery) return at_head == head && at_query == query;
    const bool same_group = at_head / clean.Group() == head / clean.Group();
    const bool same_element = part == Part::kKey || at_element == element;
    return same_group && same_element && at_query >= query;
  }
  // Whether the gradient of a query, or of a key or value, may depend on it.
  bool MayReachQueryGradient(int64_t at_head, int64_t at_query) const {
    if (part == Part::kQuery) return at_head == head && at_query == query;
    return at_head / clean.Group() == head / clean.Group() && at_query >= query;
  }
  bool MayReachKeyGradient(int64_t at_kv_head, int64_t at_key) const {
    if (at_kv_head != head / clean.Group()) return false;
    return part != Part::kQuery || at_key <= query;
  }

  AttentionProblem clean, poisoned;
  Part part;
  int64_t batch, head, query, element;
};

TEST(AttentionProperty, NonFiniteInputsReachWhatDependsOnThem) {
  ForEachCase(2000, 200, [](RandomCase& random) {
    PoisonedAttention p(random);
    SCOPED_TRACE(ShapeText(p.clean.shape));
    p.clean.Forward();
    p.poisoned.Forward();
    const AttentionShape& s = p.clean.shape;
    for (int64_t row = 0; row < p.clean.tokens; ++row) {
      for (int64_t column = 0; column < p.clean.o.columns(); ++column) {
        const int64_t batch = row / s.sequence, query = row % s.sequence;
        const int64_t head = column / s.head_dim, element = column % s.head_dim;
        const double value = p.poisoned.o.At(row, column);
        if (p.Reaches(batch, head, query, element)) {
          ASSERT_FALSE(std::isfinite(value)) << "row " << row << ", column " << column;
        } else {
          ASSERT_EQ(value, p.clean.o.At(row, column)) << "row " << row << ", column " << column;
        }
      }
    }
  });
}

// In the gradients: of the query itself and of all keys and values that it sees, and of nothing
// that does not depend on it.
TEST(AttentionProperty, NonFiniteInputsReachTheGradients) {
  ForEachCase(3000, 120, [](RandomCase& random) {
    PoisonedAttention p(random);
    SCOPED_TRACE(ShapeText(p.clean.shape));
    for (AttentionProblem* problem : {&p.clean, &p.poisoned}) {
      problem->Forward();
      problem->Backward();
    }
    const AttentionShape& s = p.clean.shape;
    for (int64_t row = 0; row < p.clean.tokens; ++row) {
      for (int64_t column = 0; column < p.clean.dqkv.columns(); ++column) {
        const int64_t head = column / s.head_dim, at = row % s.sequence;
        const bool may_reach = head < s.query_heads
                                   ? p.MayReachQueryGradient(head, at)
                                   : p.MayReachKeyGradient((head - s.query_heads) % s.kv_heads, at);
        if (row / s.sequence == p.batch && may_reach) continue;
        ASSERT_EQ(p.poisoned.dqkv.At(row, column), p.clean.dqkv.At(row, column))
            << "row " << row << ", column " << column;
      }
    }
    const int64_t first = p.batch * s.sequence, row = first + p.query;
    for (int64_t i = 0; i < s.head_dim; ++i) {
      const StridedOperand& dqkv = p.poisoned.dqkv;
      ASSERT_FALSE(std::isfinite(dqkv.At(row, p.clean.QueryAt(p.head) + i)));
      for (int64_t key = first; key <= row; ++key) {
        ASSERT_FALSE(std::isfinite(dqkv.At(key, p.clean.KeyAt(p.head) + i))) << "key " << key;
        if (p.part == PoisonedAttention::Part::kValue) continue;
        ASSERT_FALSE(std::isfinite(dqkv.At(key, p.clean.ValueAt(p.head) + i))) << "value " << key;
      }
    }
  });
}

}  // namespace
}  // namespace planc::host
