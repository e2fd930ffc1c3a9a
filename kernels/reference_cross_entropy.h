// Plain cross entropy of one row over the whole vocabulary; see kernels/cross_entropy.h.
#ifndef PLANC_KERNELS_REFERENCE_CROSS_ENTROPY_H_
#define PLANC_KERNELS_REFERENCE_CROSS_ENTROPY_H_

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace planc::reference {

// -log softmax(logits)[target] over logits [vocab].
template <typename S>
S CrossEntropyRow(const S* logits, int64_t vocab, int64_t target) {
  const S maximum = *std::max_element(logits, logits + vocab);
  S sum = 0;
  for (int64_t i = 0; i < vocab; ++i) sum += std::exp(logits[i] - maximum);
  return std::log(sum) + maximum - logits[target];
}

// dlogits = scale * (softmax(logits) - onehot(target)).
template <typename S>
void CrossEntropyRowBackward(const S* logits, int64_t vocab, int64_t target, S scale, S* dlogits) {
  const S maximum = *std::max_element(logits, logits + vocab);
  S sum = 0;
  for (int64_t i = 0; i < vocab; ++i) sum += std::exp(logits[i] - maximum);
  for (int64_t i = 0; i < vocab; ++i) {
    dlogits[i] = scale * (std::exp(logits[i] - maximum) / sum - (i == target ? 1 : 0));
  }
}

}  // namespace planc::reference

#endif  // PLANC_KERNELS_REFERENCE_CROSS_ENTROPY_H_
