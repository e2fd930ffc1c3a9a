// Cross entropy over logits whose columns are sharded across a vocabulary-parallel group (Shoeybi
// et al. 2019, section 3), cut where the collectives belong:
//   LogitsMax -> all-reduce(max) of maximum -> SumExp -> all-reduce(sum) of pair -> LossGrad.
// With one rank the collectives drop out. Local column j is vocabulary id vocab_begin + j. Columns
// from valid_columns on pad the vocabulary: they are ignored and get gradient 0. Logits: f32 or
// bf16; everything else is float, and all arithmetic is in fp32.
#ifndef PLANC_KERNELS_CROSS_ENTROPY_H_
#define PLANC_KERNELS_CROSS_ENTROPY_H_

#include <cstdint>

#include "kernels/context.h"
#include "schemas/dtype.h"

namespace planc::host {

// A target with this id takes no part in the loss: its row adds 0 and has gradient 0.
inline constexpr int32_t kIgnoredTarget = -1;

// maximum[t] = max over the valid columns of logits[t]; -infinity when there are none, NaN when any
// of them is NaN.
struct LogitsMaxArgs {
  int64_t tokens = 0;   // T
  int64_t columns = 0;  // Vl
  int64_t valid_columns = 0;
  const void* logits = nullptr;  // [T, Vl]
  float* maximum = nullptr;      // [T]
};
void LogitsMax(const LogitsMaxArgs& args, DType dtype, KernelContext& ctx);

// pair[t] = {sum over valid columns of exp(logit - maximum[t]), logit of the target or 0 when the
// target is not a valid local column}.
struct SumExpArgs {
  int64_t tokens = 0;   // T
  int64_t columns = 0;  // Vl
  int64_t valid_columns = 0;
  int64_t vocab_begin = 0;
  const void* logits = nullptr;      // [T, Vl]
  const float* maximum = nullptr;    // [T]
  const int32_t* targets = nullptr;  // [T]
  float* pair = nullptr;             // [T, 2]
};
void SumExp(const SumExpArgs& args, DType dtype, KernelContext& ctx);

// *loss += scale * sum over rows of (log(pair[t].sum) + maximum[t] - pair[t].target), summed in
// double in row order. Needs no logits; evaluation stops here.
struct LossArgs {
  int64_t tokens = 0;                // T
  float scale = 0;                   // 1 / number of target tokens of the global batch
  const float* maximum = nullptr;    // [T]
  const float* pair = nullptr;       // [T, 2]
  const int32_t* targets = nullptr;  // [T]
  float* loss = nullptr;             // [1], +=
};
void Loss(const LossArgs& args, KernelContext& ctx);

// dlogits[t, j] = scale * (exp(logits[t, j] - maximum[t]) / pair[t].sum - (j is the target)); 0 in
// masked columns. Also adds the loss as Loss does. dlogits may be logits.
struct LossGradArgs {
  int64_t tokens = 0;   // T
  int64_t columns = 0;  // Vl
  int64_t valid_columns = 0;
  int64_t vocab_begin = 0;
  float scale = 0;
  const void* logits = nullptr;      // [T, Vl]
  const float* maximum = nullptr;    // [T]
  const float* pair = nullptr;       // [T, 2]
  const int32_t* targets = nullptr;  // [T]
  void* dlogits = nullptr;           // [T, Vl]
  float* loss = nullptr;             // [1], +=
};
void LossGrad(const LossGradArgs& args, DType dtype, KernelContext& ctx);

}  // namespace planc::host

#endif  // PLANC_KERNELS_CROSS_ENTROPY_H_
