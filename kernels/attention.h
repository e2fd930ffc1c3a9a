#ifndef PLANC_KERNELS_ATTENTION_H_
#define PLANC_KERNELS_ATTENTION_H_

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/context.h"
#include "schemas/dtype.h"

namespace planc::host {

// Causal grouped-query attention over `batch` sequences of `sequence` tokens (T = batch*sequence).
// `query_heads` (A) is a multiple of `kv_heads` (K): query head h reads key/value head h / (A/K).
struct AttentionShape {
  int64_t batch = 0;
  int64_t sequence = 0;  // S
  int64_t query_heads = 0;
  int64_t kv_heads = 0;
  int64_t head_dim = 0;  // D: even, at most 256.
  float scale = 0.0f;    // Multiplies the logits; 0 means 1/sqrt(D).
};

// InvalidArgument, naming the offending numbers, unless the shape is one that the kernels take.
absl::Status CheckAttentionShape(const AttentionShape& shape);

// Workspace in bytes; functions of the shape and of the number of threads alone. Both grow with
// S*D per thread and never with S*S.
int64_t AttentionForwardWorkspaceBytes(const AttentionShape& shape, int threads);
int64_t AttentionBackwardWorkspaceBytes(const AttentionShape& shape, int threads);

struct AttentionForwardArgs {
  AttentionShape shape;
  const void* qkv = nullptr;  // [T, (A+2K)*D]: per row A query heads, K key heads, K value heads
  void* o = nullptr;          // [T, A*D]
  float* lse = nullptr;       // [batch, A, S]: log(sum over keys of exp(logit)), kept for backward
};

struct AttentionBackwardArgs {
  AttentionShape shape;
  const void* qkv = nullptr;   // [T, (A+2K)*D]
  const void* o = nullptr;     // [T, A*D], from the forward pass
  const float* lse = nullptr;  // [batch, A, S], from the forward pass
  const void* d_o = nullptr;   // [T, A*D]
  void* dqkv = nullptr;        // [T, (A+2K)*D], written (not accumulated); may not alias qkv
};

// o = softmax(scale * q k^T, causal) v for every sequence and query head.
//
// Works on blocks of queries and keys with a running maximum and sum (Milakov and Gimelshein 2018;
// Dao et al. 2022, Algorithm 1), so no [S, S] matrix exists; blocks above the diagonal are skipped.
// `dtype` (f32 or bf16) is the type of qkv and o. All arithmetic is fp32, with the same bits for
// every length of vectors; bf16 on InstructionSet::kAmxBf16 rounds the factors of products that are
// computed on the way to bf16 (kernels/attention_amx.h), and has bits of its own. Parallel over
// (sequence, key/value head); the result does not depend on the number of threads. Non-finite
// inputs reach the outputs that depend on them, and no others; on AMX also up to 31 earlier rows.
// REQUIRES: CheckAttentionShape(shape) is OK; workspace aligned to 64 bytes and large enough.
void AttentionForward(const AttentionForwardArgs& args, DType dtype, KernelContext& context);

// The gradient of AttentionForward, recomputing the probabilities from lse (Dao et al. 2022,
// Algorithm 4): with P = exp(scale*q k^T - lse) and delta = rowsum(do * o),
//   dv = P^T do,  dS = P * (do v^T - delta),  dq = scale * dS k,  dk = scale * dS^T q;
// dk and dv sum over the query heads of the group, in head order.
// Same types, parallelism, determinism and requirements as AttentionForward.
void AttentionBackward(const AttentionBackwardArgs& args, DType dtype, KernelContext& context);

}  // namespace planc::host

#endif  // PLANC_KERNELS_ATTENTION_H_
