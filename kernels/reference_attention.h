#ifndef PLANC_KERNELS_REFERENCE_ATTENTION_H_
#define PLANC_KERNELS_REFERENCE_ATTENTION_H_

#include <cmath>
#include <cstdint>
#include <vector>

#include "kernels/attention.h"

namespace planc::host {

// Plain causal attention in `Scalar` arithmetic, one query at a time, with all its logits at once.
// Arguments as in kernels/attention.h; shape.scale must be given (not 0).
template <typename Scalar>
class ReferenceAttention {
 public:
  ReferenceAttention(const AttentionShape& shape, const std::vector<Scalar>& qkv)
      : shape_(shape),
        qkv_(qkv),
        stride_((shape.query_heads + 2 * shape.kv_heads) * shape.head_dim) {}

  // o [T, A*D] and lse [batch, A, S].
  void Forward(std::vector<Scalar>& o, std::vector<Scalar>& lse) const {
    o.assign(Tokens() * shape_.query_heads * shape_.head_dim, 0);
    lse.assign(Tokens() * shape_.query_heads, 0);
    ForEachQuery([&](const Query& at) {
      const std::vector<Scalar> p = Probabilities(at, &lse[at.lse]);
      for (int64_t j = 0; j <= at.query; ++j) {
        for (int64_t i = 0; i < shape_.head_dim; ++i) {
          o[at.output + i] += p[j] * qkv_[ValueAt(at, j) + i];
        }
      }
    });
  }

  // dqkv [T, (A+2K)*D] from d_o [T, A*D].
  void Backward(const std::vector<Scalar>& d_o, std::vector<Scalar>& dqkv) const {
    dqkv.assign(qkv_.size(), 0);
    ForEachQuery([&](const Query& at) {
      Scalar lse;
      const std::vector<Scalar> p = Probabilities(at, &lse);
      std::vector<Scalar> dp(at.query + 1, 0);
      Scalar delta = 0;
      for (int64_t j = 0; j <= at.query; ++j) {
        for (int64_t i = 0; i < shape_.head_dim; ++i) {
          dp[j] += d_o[at.output + i] * qkv_[ValueAt(at, j) + i];
        }
        delta += p[j] * dp[j];
      }
      for (int64_t j = 0; j <= at.query; ++j) {
        const Scalar d_logit = p[j] * (dp[j] - delta) * static_cast<Scalar>(shape_.scale);
        for (int64_t i = 0; i < shape_.head_dim; ++i) {
          dqkv[at.q + i] += d_logit * qkv_[KeyAt(at, j) + i];
          dqkv[KeyAt(at, j) + i] += d_logit * qkv_[at.q + i];
          dqkv[ValueAt(at, j) + i] += p[j] * d_o[at.output + i];
        }
      }
    });
  }

 private:
  // One query of one head, with the offsets of its rows.
  struct Query {
    int64_t batch, head, query;
    int64_t q, output, lse;
  };

  int64_t Tokens() const { return shape_.batch * shape_.sequence; }

  template <typename Body>
  void ForEachQuery(const Body& body) const {
    for (int64_t b = 0; b < shape_.batch; ++b) {
      for (int64_t h = 0; h < shape_.query_heads; ++h) {
        for (int64_t s = 0; s < shape_.sequence; ++s) {
          const int64_t row = b * shape_.sequence + s;
          body(Query{b, h, s, row * stride_ + h * shape_.head_dim,
                     (row * shape_.query_heads + h) * shape_.head_dim,
                     (b * shape_.query_heads + h) * shape_.sequence + s});
        }
      }
    }
  }

  int64_t KeyAt(const Query& at, int64_t key) const {
    const int64_t kv_head = at.head / (shape_.query_heads / shape_.kv_heads);
    return (at.batch * shape_.sequence + key) * stride_ +
           (shape_.query_heads + kv_head) * shape_.head_dim;
  }
  int64_t ValueAt(const Query& at, int64_t key) const {
    return KeyAt(at, key) + shape_.kv_heads * shape_.head_dim;
  }

  // softmax of the query's logits over keys 0 to at.query; stores log(sum(exp(logits))).
  std::vector<Scalar> Probabilities(const Query& at, Scalar* lse) const {
    std::vector<Scalar> p(at.query + 1, 0);
    for (int64_t j = 0; j <= at.query; ++j) {
      for (int64_t i = 0; i < shape_.head_dim; ++i) p[j] += qkv_[at.q + i] * qkv_[KeyAt(at, j) + i];
      p[j] *= static_cast<Scalar>(shape_.scale);
    }
    Scalar maximum = p[0];
    for (const Scalar logit : p) maximum = logit > maximum ? logit : maximum;
    Scalar sum = 0;
    for (Scalar& value : p) {
      value = std::exp(value - maximum);
      sum += value;
    }
    for (Scalar& value : p) value /= sum;
    *lse = maximum + std::log(sum);
    return p;
  }

  AttentionShape shape_;
  const std::vector<Scalar>& qkv_;
  int64_t stride_;
};

}  // namespace planc::host

#endif  // PLANC_KERNELS_REFERENCE_ATTENTION_H_
