// Plain rotary embedding of one head; see kernels/rope.h.
#ifndef PLANC_KERNELS_REFERENCE_ROPE_H_
#define PLANC_KERNELS_REFERENCE_ROPE_H_

#include <cmath>
#include <cstdint>

namespace planc::reference {

template <typename S>
void RopeHead(const S* x, int64_t position, int64_t head_dim, double theta, int direction, S* y) {
  const int64_t half = head_dim / 2;
  for (int64_t i = 0; i < half; ++i) {
    const double frequency = 1.0 / std::pow(theta, 2.0 * i / head_dim);
    const S cosine = static_cast<S>(std::cos(position * frequency));
    const S sine = static_cast<S>(direction * std::sin(position * frequency));
    const S a = x[i];
    const S b = x[i + half];
    y[i] = a * cosine - b * sine;
    y[i + half] = b * cosine + a * sine;
  }
}

}  // namespace planc::reference

#endif  // PLANC_KERNELS_REFERENCE_ROPE_H_
