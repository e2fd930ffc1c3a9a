// Plain AdamW of one element; see kernels/optimizer.h.
#ifndef PLANC_KERNELS_REFERENCE_OPTIMIZER_H_
#define PLANC_KERNELS_REFERENCE_OPTIMIZER_H_

#include <cmath>
#include <cstdint>

namespace planc::reference {

// One step on parameter p with moments m and v; `gradient` is already clipped.
template <typename S>
void AdamWElement(S gradient, int64_t step, S lr, S beta1, S beta2, S epsilon, S weight_decay, S* p,
                  S* m, S* v) {
  *p *= 1 - lr * weight_decay;
  *m = beta1 * *m + (1 - beta1) * gradient;
  *v = beta2 * *v + (1 - beta2) * gradient * gradient;
  const S correction1 = 1 - std::pow(beta1, static_cast<S>(step));
  const S correction2 = 1 - std::pow(beta2, static_cast<S>(step));
  *p -= lr / correction1 * *m / (std::sqrt(*v) / std::sqrt(correction2) + epsilon);
}

}  // namespace planc::reference

#endif  // PLANC_KERNELS_REFERENCE_OPTIMIZER_H_
