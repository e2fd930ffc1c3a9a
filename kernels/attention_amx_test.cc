#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/attention.h"
#include "kernels/instruction_set.h"
#include "kernels/property_test.h"

namespace planc::host {
namespace {

// Non-finite inputs may reach this many rows before their own (kernels/attention.h).
constexpr int64_t kSpread = 31;

AttentionShape RandomShape(RandomCase& random) {
  AttentionShape s;
  s.batch = random.Between(1, 2);
  s.kv_heads = random.Between(1, 3);
  s.query_heads = s.kv_heads * random.Between(1, 3);
  s.sequence = random.Chance(0.1) ? random.Between(250, 400) : random.Size(140);
  // The reference costs batch * heads * sequence^2 * head_dim.
  const int64_t pairs = s.batch * s.query_heads * s.sequence * s.sequence;
  s.head_dim = 2 * random.Size(std::clamp<int64_t>(80000 / pairs, 8, 128));
  s.scale = random.Chance(0.5) ? 0 : static_cast<float>(random.Value(ValueKind::kNormal) / 4);
  return s;
}

// Inputs and outputs of both passes.
struct AmxAttention {
  AmxAttention(RandomCase& random, const AttentionShape& s, ValueKind kind)
      : shape(s),
        tokens(s.batch * s.sequence),
        scale(s.scale != 0 ? s.scale : 1 / std::sqrt(static_cast<double>(s.head_dim))),
        qkv(random.Matrix(DType::kBF16, tokens, (s.query_heads + 2 * s.kv_heads) * s.head_dim,
                          kind)),
        d_o(random.Matrix(DType::kBF16, tokens, s.query_heads * s.head_dim, kind)),
        o(DType::kBF16, tokens, s.query_heads * s.head_dim, 0, random.Between(0, 5)),
        lse(DType::kF32, s.batch * s.query_heads, s.sequence),
        dqkv(DType::kBF16, tokens, qkv.columns(), 0, random.Between(0, 5)) {}

  void Forward() {
    ExpectReproducible(
        {&o, &lse}, [&](int threads) { return AttentionForwardWorkspaceBytes(shape, threads); },
        [&](KernelContext& context) {
          context.instruction_set = InstructionSet::kAmxBf16;
          AttentionForward({shape, qkv.data(), o.data(), lse.floats()}, DType::kBF16, context);
        });
  }
  void Backward() {
    ExpectReproducible(
        {&dqkv}, [&](int threads) { return AttentionBackwardWorkspaceBytes(shape, threads); },
        [&](KernelContext& context) {
          context.instruction_set = InstructionSet::kAmxBf16;
          AttentionBackward({shape, qkv.data(), o.data(), lse.floats(), d_o.data(), dqkv.data()},
                            DType::kBF16, context);
        });
  }

  int64_t Group() const { return shape.query_heads / shape.kv_heads; }
  // First columns of a query head, and of the key and value head that it reads.
  int64_t QueryAt(int64_t head) const { return head * shape.head_dim; }
  int64_t KeyAt(int64_t head) const {
    return (shape.query_heads + head / Group()) * shape.head_dim;
  }
  int64_t ValueAt(int64_t head) const { return KeyAt(head) + shape.kv_heads * shape.head_dim; }

  template <typename Body>
  void ForEachQuery(const Body& body) const {
    for (int64_t batch = 0; batch < shape.batch; ++batch) {
      for (int64_t head = 0; head < shape.query_heads; ++head) {
        for (int64_t query = 0; query < shape.sequence; ++query) body(batch, head, query);
      }
    }
  }

  AttentionShape shape;
  int64_t tokens;
  double scale;
  StridedOperand qkv, d_o, o, lse, dqkv;
};

// A factor of a product on tiles: rounded to bf16, with denormals taken as zero.
Bounded Factor(const Bounded& value) {
  if (!value.known()) return value;
  return Bounded(value.value(),
                 value.error() * (1 + 0x1p-8) + 0x1p-8 * std::fabs(value.value()) + 0x1p-126);
}

// The formulas of kernels/attention.h, one query at a time.
class BoundedAttention {
 public:
  explicit BoundedAttention(const AmxAttention& p)
      : p_(p),
        dim_(p.shape.head_dim),
        stride_(p.qkv.columns()),
        output_stride_(p.o.columns()),
        qkv_(p.qkv.Values()),
        d_o_(p.d_o.Values()),
        o_(p.o.Values()) {}

  void CheckForward() const {
    std::vector<Bounded> o(p_.tokens * output_stride_), lse(p_.tokens * p_.shape.query_heads);
    p_.ForEachQuery([&](int64_t batch, int64_t head, int64_t query) {
      const int64_t first = batch * p_.shape.sequence;
      std::vector<Bounded> weights = Logits(first, head, query);
      const Bounded maximum = *std::max_element(weights.begin(), weights.end());
      Bounded sum;
      for (Bounded& weight : weights) {
        weight = exp(weight - maximum);
        sum += weight;
        weight = Factor(weight);
      }
      for (int64_t i = 0; i < dim_; ++i) {
        const double* values = &qkv_[first * stride_ + p_.ValueAt(head) + i];
        o[(first + query) * output_stride_ + p_.QueryAt(head) + i] =
            BoundedDot(query + 1, weights.data(), 1, values, stride_) / sum;
      }
      lse[(batch * p_.shape.query_heads + head) * p_.shape.sequence + query] = maximum + log(sum);
    });
    ExpectAgrees(p_.o, o, "o");
    ExpectAgrees(p_.lse, lse, "lse");
  }

  // From the o and lse that the kernel was given.
  void CheckBackward() const {
    std::vector<Bounded> dqkv(p_.tokens * stride_);
    p_.ForEachQuery([&](int64_t batch, int64_t head, int64_t query) {
      AddQuery(batch * p_.shape.sequence, head, query,
               p_.lse.At(batch * p_.shape.query_heads + head, query), dqkv);
    });
    ExpectAgrees(p_.dqkv, dqkv, "dqkv");
  }

 private:
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
    const int64_t q_at = row * stride_ + p_.QueryAt(head);
    const double* d_o = &d_o_[row * output_stride_ + p_.QueryAt(head)];
    const double* o = &o_[row * output_stride_ + p_.QueryAt(head)];
    const Bounded delta = BoundedDot(dim_, d_o, 1, o, 1);
    const Bounded scale = Bounded::Rounded(p_.scale);
    const std::vector<Bounded> logits = Logits(first, head, query);
    for (int64_t j = 0; j <= query; ++j) {
      const int64_t k_at = (first + j) * stride_ + p_.KeyAt(head);
      const int64_t v_at = (first + j) * stride_ + p_.ValueAt(head);
      const Bounded weight = exp(logits[j] - Bounded(lse));
      const Bounded d_weight = BoundedDot(dim_, d_o, 1, &qkv_[v_at], 1);
      const Bounded d_logit = Factor(weight * (d_weight - delta)) * scale;
      const Bounded rounded = Factor(weight);
      for (int64_t i = 0; i < dim_; ++i) {
        dqkv[q_at + i] += d_logit * qkv_[k_at + i];
        dqkv[k_at + i] += d_logit * qkv_[q_at + i];
        dqkv[v_at + i] += rounded * d_o[i];
      }
    }
  }

  const AmxAttention& p_;
  int64_t dim_, stride_, output_stride_;
  std::vector<double> qkv_, d_o_, o_;
};

std::string ShapeText(const AttentionShape& s) {
  return "batch " + std::to_string(s.batch) + " sequence " + std::to_string(s.sequence) +
         " heads " + std::to_string(s.query_heads) + "/" + std::to_string(s.kv_heads) + " dim " +
         std::to_string(s.head_dim) + " scale " + std::to_string(s.scale);
}

class AmxAttentionTest : public testing::Test {
 protected:
  void SetUp() override {
    const absl::StatusOr<InstructionSet> set = DetectInstructionSet();
    ASSERT_TRUE(set.ok()) << set.status();
    if (*set < InstructionSet::kAmxBf16) GTEST_SKIP() << "this machine has no AMX for bf16";
  }
};

TEST_F(AmxAttentionTest, AgreesWithTheReference) {
  ForEachCase(1, 100, [](RandomCase& random) {
    const ValueKind kind = random.Chance(0.8) ? ValueKind::kNormal : ValueKind::kEqual;
    AmxAttention p(random, RandomShape(random), kind);
    SCOPED_TRACE(ShapeText(p.shape));
    p.Forward();
    BoundedAttention(p).CheckForward();
    p.Backward();
    BoundedAttention(p).CheckBackward();
  });
}

// However large the logits: outputs are means of the values seen, the first of them alone in row 0.
TEST_F(AmxAttentionTest, OutputsStayWithinTheValues) {
  ForEachCase(1000, 60, [](RandomCase& random) {
    AmxAttention p(random, RandomShape(random), ValueKind::kNormal);
    SCOPED_TRACE(ShapeText(p.shape));
    const double magnitude = std::exp2(static_cast<double>(random.Between(0, 30)));
    for (int64_t row = 0; row < p.tokens; ++row) {
      for (int64_t i = 0; i < p.ValueAt(0); ++i) p.qkv.Set(row, i, p.qkv.At(row, i) * magnitude);
    }
    p.Forward();
    p.Backward();
    p.ForEachQuery([&](int64_t batch, int64_t head, int64_t query) {
      const int64_t first = batch * p.shape.sequence;
      for (int64_t i = 0; i < p.shape.head_dim; ++i) {
        double largest = 0;
        for (int64_t key = first; key <= first + query; ++key) {
          largest = std::max(largest, std::fabs(p.qkv.At(key, p.ValueAt(head) + i)));
        }
        const double value = p.o.At(first + query, p.QueryAt(head) + i);
        ASSERT_LE(std::fabs(value), largest * (1 + 0x1p-8)) << "row " << query;
        if (query > 0) continue;
        ASSERT_EQ(value, p.qkv.At(first, p.ValueAt(head) + i));
      }
    });
    for (const double value : p.dqkv.Values()) ASSERT_TRUE(std::isfinite(value));
  });
}

// A NaN in a query, a key or a value: outputs and gradients that depend on it are NaN, those of
// other sequences and of other key/value heads, and outputs long before it, have the same bits.
TEST_F(AmxAttentionTest, NonFiniteInputsReachWhatDependsOnThem) {
  ForEachCase(2000, 80, [](RandomCase& random) {
    AmxAttention clean(random, RandomShape(random), ValueKind::kNormal);
    AmxAttention poisoned = clean;
    const AttentionShape& s = clean.shape;
    const int64_t batch = random.Between(0, s.batch - 1), part = random.Between(0, 2);
    const int64_t head = random.Between(0, s.query_heads - 1);
    const int64_t query = random.Between(0, s.sequence - 1), dim = s.head_dim;
    const int64_t columns[] = {clean.QueryAt(head), clean.KeyAt(head), clean.ValueAt(head)};
    const int64_t element = random.Between(0, dim - 1);
    poisoned.qkv.Set(batch * s.sequence + query, columns[part] + element,
                     std::numeric_limits<double>::quiet_NaN());
    SCOPED_TRACE(ShapeText(s));
    for (AmxAttention* problem : {&clean, &poisoned}) {
      problem->Forward();
      problem->Backward();
    }
    clean.ForEachQuery([&](int64_t at_batch, int64_t at_head, int64_t at_query) {
      const bool related = at_batch == batch && at_head / clean.Group() == head / clean.Group();
      const int64_t row = at_batch * s.sequence + at_query;
      for (int64_t i = 0; i < dim; ++i) {
        const int64_t at = clean.QueryAt(at_head) + i;
        const bool depends =
            related && (part == 0 ? at_head == head && at_query == query
                                  : at_query >= query && (part == 1 || i == element));
        if (depends) {
          ASSERT_TRUE(std::isnan(poisoned.o.At(row, at))) << "query " << at_query;
        } else if (!related || at_query < query - kSpread || (part == 0 && at_head != head)) {
          ASSERT_EQ(poisoned.o.At(row, at), clean.o.At(row, at)) << "query " << at_query;
        }
        if (!related) {
          for (const int64_t first : {at, clean.KeyAt(at_head) + i, clean.ValueAt(at_head) + i}) {
            ASSERT_EQ(poisoned.dqkv.At(row, first), clean.dqkv.At(row, first));
          }
        } else if (at_head == head && at_query <= query) {
          ASSERT_TRUE(std::isnan(poisoned.dqkv.At(row, clean.KeyAt(head) + i)));
        }
      }
    });
  });
}

}  // namespace
}  // namespace planc::host
