// The work of one thread on one key/value head of one sequence: blocks and inner loops of
// kernels/attention.h.
#ifndef PLANC_KERNELS_ATTENTION_BLOCK_H_
#define PLANC_KERNELS_ATTENTION_BLOCK_H_

#include <cstdint>

#include "kernels/attention.h"
#include "kernels/block_layout.h"
#include "schemas/dtype.h"

namespace planc::host {

constexpr int64_t kMaxHeadDim = 256;

// Queries and keys of one tile of logits. Queries are whole row groups; keys are whole panels.
constexpr int64_t kQueryBlock = 4 * kRowGroup;
constexpr int64_t kKeyBlock = 6 * kPanelWidth;

// Layouts of the fp32 blocks. "Panels over X of Y": for each 16 columns of X, [Y][16]; a matrix of
// n rows has panels at distance 16 * n.

// Workspace of the forward pass. A null workspace gives the sizes alone.
struct ForwardHeadBlocks {
  ForwardHeadBlocks(const AttentionShape& shape, void* workspace) : cursor(workspace) {
    const int64_t padded_sequence = RoundUp(shape.sequence, kPanelWidth);
    const int64_t padded_dim = RoundUp(shape.head_dim, kPanelWidth);
    keys = cursor.Take(padded_sequence * shape.head_dim);
    values = cursor.Take(shape.sequence * padded_dim);
    queries = cursor.Take(kQueryBlock * shape.head_dim);
    output = cursor.Take(kQueryBlock * padded_dim);
    logits = cursor.Take(kQueryBlock * kKeyBlock);
    maximum = cursor.Take(kQueryBlock);
    sum = cursor.Take(kQueryBlock);
  }
  int64_t bytes() const { return cursor.bytes(); }

  BlockCursor cursor;
  float* keys;     // panels over keys of D (that is, k^T)
  float* values;   // panels over D of keys
  float* queries;  // [48][D], times scale * log2(e)
  float* output;   // [48][padded D], not yet divided by sum
  float* logits;   // [48][96], then probabilities
  float* maximum;  // [48] of the logits seen, base 2
  float* sum;      // [48] of exp2(logit - maximum)
};

// Workspace of the backward pass.
struct BackwardHeadBlocks {
  BackwardHeadBlocks(const AttentionShape& shape, void* workspace) : cursor(workspace) {
    const int64_t padded_sequence = RoundUp(shape.sequence, kPanelWidth);
    const int64_t padded_dim = RoundUp(shape.head_dim, kPanelWidth);
    keys = cursor.Take(padded_sequence * shape.head_dim);
    values = cursor.Take(padded_sequence * shape.head_dim);
    key_rows = cursor.Take(shape.sequence * padded_dim);
    d_keys = cursor.Take(shape.sequence * padded_dim);
    d_values = cursor.Take(shape.sequence * padded_dim);
    queries = cursor.Take(kQueryBlock * shape.head_dim);
    query_panels = cursor.Take(kQueryBlock * padded_dim);
    d_output = cursor.Take(kQueryBlock * shape.head_dim);
    d_output_panels = cursor.Take(kQueryBlock * padded_dim);
    d_queries = cursor.Take(kQueryBlock * padded_dim);
    probabilities = cursor.Take(kQueryBlock * kKeyBlock);
    d_logits = cursor.Take(kQueryBlock * kKeyBlock);
    lse = cursor.Take(kQueryBlock);
    delta = cursor.Take(kQueryBlock);
  }
  int64_t bytes() const { return cursor.bytes(); }

  BlockCursor cursor;
  float* keys;             // panels over keys of D (k^T)
  float* values;           // panels over keys of D (v^T)
  float* key_rows;         // panels over D of keys
  float* d_keys;           // panels over D of keys, without the factor scale
  float* d_values;         // panels over D of keys
  float* queries;          // [48][D], times scale * log2(e)
  float* query_panels;     // panels over D of 48 queries
  float* d_output;         // [48][D]
  float* d_output_panels;  // panels over D of 48 queries
  float* d_queries;        // [48][padded D], without the factor scale
  float* probabilities;    // [48][96]
  float* d_logits;         // [48][96]
  float* lse;              // [48], base 2
  float* delta;            // [48] rowsum(do * o)
};

// Both write the outputs that belong to one key/value head of one sequence: its query heads' rows
// of o and lse, or its columns of dqkv.
// REQUIRES: args.shape.scale is not 0.
void ForwardKvHead(const AttentionForwardArgs& args, DType dtype, int64_t batch, int64_t kv_head,
                   const ForwardHeadBlocks& blocks);
void BackwardKvHead(const AttentionBackwardArgs& args, DType dtype, int64_t batch, int64_t kv_head,
                    const BackwardHeadBlocks& blocks);

}  // namespace planc::host

#endif  // PLANC_KERNELS_ATTENTION_BLOCK_H_
