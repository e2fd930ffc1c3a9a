// Activation functions of the feed-forward block, element type `dtype` (f32 or bf16), fp32
// arithmetic.
#ifndef PLANC_KERNELS_ACTIVATION_H_
#define PLANC_KERNELS_ACTIVATION_H_

#include <cstdint>

#include "kernels/context.h"
#include "schemas/dtype.h"

namespace planc::host {

// SwiGLU (Shazeer 2020): s = silu(gate) * up with silu(z) = z / (1 + exp(-z)).
// Row t of gate_up holds the F gate values, then the F up values.
struct SwiGluForwardArgs {
  int64_t tokens = 0;             // T
  int64_t ffn = 0;                // F
  const void* gate_up = nullptr;  // [T, 2F]
  void* s = nullptr;              // [T, F]
};
void SwiGluForward(const SwiGluForwardArgs& args, DType dtype, KernelContext& ctx);

// dgate = ds * up * sigmoid(gate) * (1 + gate * (1 - sigmoid(gate))), dup = ds * silu(gate).
// dgate_up may be gate_up.
struct SwiGluBackwardArgs {
  int64_t tokens = 0;             // T
  int64_t ffn = 0;                // F
  const void* gate_up = nullptr;  // [T, 2F]
  const void* ds = nullptr;       // [T, F]
  void* dgate_up = nullptr;       // [T, 2F]
};
void SwiGluBackward(const SwiGluBackwardArgs& args, DType dtype, KernelContext& ctx);

// GELU in the tanh form that GPT-2 was trained with (Hendrycks and Gimpel 2016; "gelu_new"):
// y = x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3))). y may be x.
struct GeluForwardArgs {
  int64_t elements = 0;
  const void* x = nullptr;
  void* y = nullptr;
};
void GeluForward(const GeluForwardArgs& args, DType dtype, KernelContext& ctx);

// dx = dy * dGELU(x)/dx. dx may be dy or x.
struct GeluBackwardArgs {
  int64_t elements = 0;
  const void* x = nullptr;
  const void* dy = nullptr;
  void* dx = nullptr;
};
void GeluBackward(const GeluBackwardArgs& args, DType dtype, KernelContext& ctx);

}  // namespace planc::host

#endif  // PLANC_KERNELS_ACTIVATION_H_
