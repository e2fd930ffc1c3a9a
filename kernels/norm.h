// Normalisation over the last dimension. Element type of x, y, dy, dx, weight and bias: `dtype`
// (f32 or bf16). Statistics are float and all arithmetic is in fp32, rounded once on the store.
#ifndef PLANC_KERNELS_NORM_H_
#define PLANC_KERNELS_NORM_H_

#include <cstddef>
#include <cstdint>

#include "kernels/context.h"
#include "schemas/dtype.h"

namespace planc::host {

// RMSNorm (Zhang and Sennrich 2019): rstd = 1 / sqrt(mean(x^2) + epsilon), y = x * rstd * weight.
// y may be x.
struct RmsNormForwardArgs {
  int64_t tokens = 0;  // T
  int64_t hidden = 0;  // H
  float epsilon = 0;
  const void* x = nullptr;       // [T, H]
  const void* weight = nullptr;  // [H]
  void* y = nullptr;             // [T, H]
  float* rstd = nullptr;         // [T]
};
void RmsNormForward(const RmsNormForwardArgs& args, DType dtype, KernelContext& ctx);

// With n = x * rstd and g = dy * weight:
//   dx      = rstd * (g - n * mean(g * n))     (or dx += when accumulate_dx)
//   dweight += sum over rows of dy * n
// dx may be dy or x.
struct RmsNormBackwardArgs {
  int64_t tokens = 0;            // T
  int64_t hidden = 0;            // H
  const void* dy = nullptr;      // [T, H]
  const void* x = nullptr;       // [T, H]
  const void* weight = nullptr;  // [H]
  const float* rstd = nullptr;   // [T]
  void* dx = nullptr;            // [T, H]
  bool accumulate_dx = false;
  void* dweight = nullptr;  // [H], +=
  DType dweight_dtype = DType::kF32;
};
void RmsNormBackward(const RmsNormBackwardArgs& args, DType dtype, KernelContext& ctx);
size_t RmsNormBackwardWorkspaceBytes(int64_t tokens, int64_t hidden);

// LayerNorm (Ba et al. 2016): mean and biased variance of the row,
// rstd = 1 / sqrt(variance + epsilon), y = (x - mean) * rstd * weight + bias. y may be x.
struct LayerNormForwardArgs {
  int64_t tokens = 0;  // T
  int64_t hidden = 0;  // H
  float epsilon = 0;
  const void* x = nullptr;       // [T, H]
  const void* weight = nullptr;  // [H]
  const void* bias = nullptr;    // [H]
  void* y = nullptr;             // [T, H]
  float* mean = nullptr;         // [T]
  float* rstd = nullptr;         // [T]
};
void LayerNormForward(const LayerNormForwardArgs& args, DType dtype, KernelContext& ctx);

// With n = (x - mean) * rstd and g = dy * weight:
//   dx      = rstd * (g - mean(g) - n * mean(g * n))     (or dx += when accumulate_dx)
//   dweight += sum over rows of dy * n,   dbias += sum over rows of dy
// dx may be dy or x. dweight and dbias share one dtype.
struct LayerNormBackwardArgs {
  int64_t tokens = 0;            // T
  int64_t hidden = 0;            // H
  const void* dy = nullptr;      // [T, H]
  const void* x = nullptr;       // [T, H]
  const void* weight = nullptr;  // [H]
  const float* mean = nullptr;   // [T]
  const float* rstd = nullptr;   // [T]
  void* dx = nullptr;            // [T, H]
  bool accumulate_dx = false;
  void* dweight = nullptr;  // [H], +=
  void* dbias = nullptr;    // [H], +=
  DType dweight_dtype = DType::kF32;
};
void LayerNormBackward(const LayerNormBackwardArgs& args, DType dtype, KernelContext& ctx);
size_t LayerNormBackwardWorkspaceBytes(int64_t tokens, int64_t hidden);

// RMSNorm of each head of a slice of columns (the query and key norms of Qwen3). Head h of row t is
// the head_dim elements at x + t * x_stride + x_column + h * head_dim; all heads share `weight`. y
// may be the same slice as x.
struct HeadNormForwardArgs {
  int64_t tokens = 0;  // T
  int64_t heads = 0;
  int64_t head_dim = 0;  // D
  float epsilon = 0;
  const void* x = nullptr;  // [T, x_stride]
  int64_t x_stride = 0;
  int64_t x_column = 0;
  const void* weight = nullptr;  // [D]
  void* y = nullptr;             // [T, y_stride]
  int64_t y_stride = 0;
  int64_t y_column = 0;
  float* rstd = nullptr;  // [T, heads]
};
void HeadNormForward(const HeadNormForwardArgs& args, DType dtype, KernelContext& ctx);

// As RmsNormBackward, per head; dx may be the same slice as dy or x.
struct HeadNormBackwardArgs {
  int64_t tokens = 0;  // T
  int64_t heads = 0;
  int64_t head_dim = 0;      // D
  const void* dy = nullptr;  // [T, dy_stride]
  int64_t dy_stride = 0;
  int64_t dy_column = 0;
  const void* x = nullptr;  // [T, x_stride]
  int64_t x_stride = 0;
  int64_t x_column = 0;
  const void* weight = nullptr;  // [D]
  const float* rstd = nullptr;   // [T, heads]
  void* dx = nullptr;            // [T, dx_stride]
  int64_t dx_stride = 0;
  int64_t dx_column = 0;
  bool accumulate_dx = false;
  void* dweight = nullptr;  // [D], +=
  DType dweight_dtype = DType::kF32;
};
void HeadNormBackward(const HeadNormBackwardArgs& args, DType dtype, KernelContext& ctx);
size_t HeadNormBackwardWorkspaceBytes(int64_t tokens, int64_t heads, int64_t head_dim);

}  // namespace planc::host

#endif  // PLANC_KERNELS_NORM_H_
