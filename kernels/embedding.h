// Token and position embeddings. Activations and tables: `dtype` (f32 or bf16).
#ifndef PLANC_KERNELS_EMBEDDING_H_
#define PLANC_KERNELS_EMBEDDING_H_

#include <cstdint>

#include "kernels/context.h"
#include "schemas/dtype.h"

namespace planc::host {

// x[t] = table[tokens[t] - vocab_begin], and zeros where tokens[t] is outside
// [vocab_begin, vocab_begin + vocab_rows): the sum over the ranks of a vocabulary-parallel group is
// then the whole embedding.
struct EmbeddingForwardArgs {
  int64_t tokens = 0;      // T
  int64_t hidden = 0;      // H
  int64_t vocab_rows = 0;  // V, rows of the local table
  int64_t vocab_begin = 0;
  const int32_t* token_ids = nullptr;  // [T]
  const void* table = nullptr;         // [V, H]
  void* x = nullptr;                   // [T, H]
};
void EmbeddingForward(const EmbeddingForwardArgs& args, DType dtype, KernelContext& ctx);

// dtable[tokens[t] - vocab_begin] += dx[t] for the local ids, in the order of t.
struct EmbeddingBackwardArgs {
  int64_t tokens = 0;      // T
  int64_t hidden = 0;      // H
  int64_t vocab_rows = 0;  // V
  int64_t vocab_begin = 0;
  const int32_t* token_ids = nullptr;  // [T]
  const void* dx = nullptr;            // [T, H]
  void* dtable = nullptr;              // [V, H], +=
  DType dtable_dtype = DType::kF32;
};
void EmbeddingBackward(const EmbeddingBackwardArgs& args, DType dtype, KernelContext& ctx);

// Learned positions (GPT-2). Row r of x has position first_position + (first_row + r) % sequence,
// where first_row is the global row of local row 0 (sequence parallelism) and first_position the
// position of the first token of each local sequence (context parallelism). x[r] +=
// table[position(r)].
struct PositionForwardArgs {
  int64_t tokens = 0;    // T
  int64_t hidden = 0;    // H
  int64_t sequence = 0;  // S
  int64_t first_row = 0;
  int64_t first_position = 0;
  const void* table = nullptr;  // [at least first_position + S, H]
  void* x = nullptr;            // [T, H], +=
};
void PositionForward(const PositionForwardArgs& args, DType dtype, KernelContext& ctx);

// dtable[position(r)] += dx[r], in the order of r.
struct PositionBackwardArgs {
  int64_t tokens = 0;    // T
  int64_t hidden = 0;    // H
  int64_t sequence = 0;  // S
  int64_t first_row = 0;
  int64_t first_position = 0;
  const void* dx = nullptr;  // [T, H]
  void* dtable = nullptr;    // [at least first_position + S, H], +=
  DType dtable_dtype = DType::kF32;
};
void PositionBackward(const PositionBackwardArgs& args, DType dtype, KernelContext& ctx);

}  // namespace planc::host

#endif  // PLANC_KERNELS_EMBEDDING_H_
