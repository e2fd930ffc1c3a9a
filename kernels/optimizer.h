// Gradient norm, clipping and AdamW. Master weights are fp32; gradients are f32 or bf16; the
// moments are f32 or bf16.
#ifndef PLANC_KERNELS_OPTIMIZER_H_
#define PLANC_KERNELS_OPTIMIZER_H_

#include <cstdint>

#include "kernels/context.h"
#include "schemas/dtype.h"

namespace planc::host {

// *sum += sum of the squares of the gradient, in double and in an order that the number of elements
// alone determines. Infinities and NaNs reach the sum.
struct SumSquaresArgs {
  int64_t elements = 0;
  const void* gradient = nullptr;
  double* sum = nullptr;  // [1], +=
};
void SumSquares(const SumSquaresArgs& args, DType dtype, KernelContext& ctx);

// norm = sqrt(sum_squares); coefficient = clip_norm / (norm + 1e-6) when clip_norm > 0 and
// norm > clip_norm, else 1. nonfinite is 1 when sum_squares is infinite or NaN (the coefficient is
// then 1 and the step must not be taken), else 0.
struct ClipCoefficientArgs {
  const double* sum_squares = nullptr;  // [1], over the whole model
  float clip_norm = 0;                  // 0 switches clipping off
  float* norm = nullptr;                // [1]
  float* coefficient = nullptr;         // [1]
  int32_t* nonfinite = nullptr;         // [1]
};
void ClipCoefficient(const ClipCoefficientArgs& args, KernelContext& ctx);

// AdamW (Loshchilov and Hutter 2019), in the order of operations of torch.optim.AdamW:
//   g = gradient * coefficient
//   p *= 1 - lr * weight_decay
//   m = beta1 * m + (1 - beta1) * g
//   v = beta2 * v + (1 - beta2) * g * g
//   p -= lr / (1 - beta1^step) * m / (sqrt(v) / sqrt(1 - beta2^step) + epsilon)
// and compute_copy = p rounded to compute_dtype. Scalars are formed in double and rounded to float
// once.
struct AdamWArgs {
  int64_t elements = 0;
  int64_t step = 1;  // of this update, counted from 1
  double lr = 0;
  double beta1 = 0;
  double beta2 = 0;
  double epsilon = 0;
  double weight_decay = 0;
  const void* gradient = nullptr;
  DType gradient_dtype = DType::kF32;
  const float* coefficient = nullptr;  // [1]; null stands for 1
  float* master = nullptr;             // p
  void* first_moment = nullptr;        // m
  void* second_moment = nullptr;       // v
  DType state_dtype = DType::kF32;     // of m and v
  void* compute_copy = nullptr;        // null when the compute weights are the master weights
  DType compute_dtype = DType::kF32;
};
void AdamW(const AdamWArgs& args, KernelContext& ctx);

}  // namespace planc::host

#endif  // PLANC_KERNELS_OPTIMIZER_H_
