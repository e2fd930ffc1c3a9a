// Plain SwiGLU and GELU of one element; see kernels/activation.h.
#ifndef PLANC_KERNELS_REFERENCE_ACTIVATION_H_
#define PLANC_KERNELS_REFERENCE_ACTIVATION_H_

#include <cmath>
#include <numbers>

namespace planc::reference {

template <typename S>
S SwiGlu(S gate, S up) {
  using std::exp;
  return gate / (1 + exp(-gate)) * up;
}

template <typename S>
void SwiGluBackward(S gate, S up, S ds, S* dgate, S* dup) {
  using std::exp;
  const S sigmoid = 1 / (1 + exp(-gate));
  *dgate = ds * up * sigmoid * (1 + gate * (1 - sigmoid));
  *dup = ds * (gate * sigmoid);
}

template <typename S>
S Gelu(S x) {
  using std::tanh;
  const S u = S(std::sqrt(2 / std::numbers::pi)) * (x + S(0.044715) * x * x * x);
  return x / 2 * (1 + tanh(u));
}

template <typename S>
S GeluBackward(S x, S dy) {
  using std::tanh;
  const S root = S(std::sqrt(2 / std::numbers::pi));
  const S t = tanh(root * (x + S(0.044715) * x * x * x));
  const S inner = root * (1 + 3 * S(0.044715) * x * x);
  return dy * ((1 + t) / 2 + x / 2 * (1 - t * t) * inner);
}

}  // namespace planc::reference

#endif  // PLANC_KERNELS_REFERENCE_ACTIVATION_H_
