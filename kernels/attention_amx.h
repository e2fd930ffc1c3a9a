// Attention of bf16 on AMX: blocks of one thread's work on one key/value head of one sequence.
//
// As kernels/attention_block.h has it, with both factors of every product in bf16: logits are
// summed in fp32 from q and k as stored and scaled afterwards; probabilities and gradients of
// logits are computed in fp32 and rounded to bf16 as factors of the products with v, do, q and k;
// sums of probabilities, the running output and all gradients are fp32.
#ifndef PLANC_KERNELS_ATTENTION_AMX_H_
#define PLANC_KERNELS_ATTENTION_AMX_H_

#include <algorithm>
#include <cstdint>

#include "kernels/amx/tile.h"
#include "kernels/attention.h"
#include "kernels/bf16.h"
#include "kernels/block_layout.h"

namespace planc::host {

// Sizes in elements, with what the tiles add to the shape's.
struct AmxExtents {
  // Queries and keys that are computed or, above the diagonal, left out together.
  static constexpr int64_t kStep = kTileDepth;

  AmxExtents(const AttentionShape& shape, int64_t max_queries, int64_t max_keys)
      : sequence(RoundUp(shape.sequence, kStep)),
        depth(RoundUp(shape.head_dim, kTileDepth)),
        columns(RoundUp(shape.head_dim, kTileColumns)),
        queries(std::min(max_queries, sequence)),
        keys(std::min(max_keys, sequence)) {}

  int64_t sequence;  // of whole steps
  int64_t depth;     // D where it is summed over
  int64_t columns;   // D where it is not
  int64_t queries;   // of one block
  int64_t keys;      // of one block
};

inline Bf16* TakeBf16(BlockCursor& cursor, int64_t count) {
  return reinterpret_cast<Bf16*>(cursor.Take(count / 2));
}

// "Strips" and "panels" are those of kernels/amx/pack.h, "tiles" blocks of [16][16] floats.
// A null workspace gives the sizes alone.
struct AmxForwardBlocks {
  // Long rows of logits, since each costs a maximum and a sum.
  static constexpr int64_t kMaxQueries = 64, kMaxKeys = 512;

  AmxForwardBlocks(const AttentionShape& shape, void* workspace)
      : extents(shape, kMaxQueries, kMaxKeys), cursor(workspace) {
    keys = TakeBf16(cursor, extents.sequence * extents.depth);
    values = TakeBf16(cursor, extents.sequence * extents.columns);
    queries = TakeBf16(cursor, extents.queries * extents.depth);
    probabilities = TakeBf16(cursor, extents.queries * extents.keys);
    logits = cursor.Take(extents.queries * extents.keys);
    output = cursor.Take(extents.queries * extents.columns);
    maximum = cursor.Take(extents.queries);
    sum = cursor.Take(extents.queries);
  }
  int64_t bytes() const { return cursor.bytes(); }

  AmxExtents extents;
  BlockCursor cursor;
  Bf16* keys;           // panels over keys of D (k^T)
  Bf16* values;         // panels over D of keys
  Bf16* queries;        // strips over queries of D
  Bf16* probabilities;  // strips over queries of the block's keys
  float* logits;        // [queries][keys]
  float* output;        // tiles [queries][D], not yet divided by sum
  float* maximum;       // of the logits seen, base 2
  float* sum;           // of exp2(logit - maximum)
};

struct AmxBackwardBlocks {
  // Every product has some depth, before its sums go back to memory.
  static constexpr int64_t kMaxQueries = 128, kMaxKeys = 128;

  AmxBackwardBlocks(const AttentionShape& shape, void* workspace)
      : extents(shape, kMaxQueries, kMaxKeys), cursor(workspace) {
    queries = TakeBf16(cursor, extents.sequence * extents.depth);
    d_output = TakeBf16(cursor, extents.sequence * extents.depth);
    query_rows = TakeBf16(cursor, extents.sequence * extents.columns);
    d_output_rows = TakeBf16(cursor, extents.sequence * extents.columns);
    d_queries = cursor.Take(extents.sequence * extents.columns);
    d_keys = cursor.Take(extents.sequence * extents.columns);
    d_values = cursor.Take(extents.sequence * extents.columns);
    lse = cursor.Take(extents.sequence);
    delta = cursor.Take(extents.sequence);
    keys = TakeBf16(cursor, extents.keys * extents.depth);
    values = TakeBf16(cursor, extents.keys * extents.depth);
    key_columns = TakeBf16(cursor, extents.columns * extents.keys);
    logits = cursor.Take(extents.keys * extents.queries);
    d_probabilities = cursor.Take(extents.keys * extents.queries);
    probabilities = TakeBf16(cursor, extents.keys * extents.queries);
    d_logits = TakeBf16(cursor, extents.keys * extents.queries);
    d_logit_panels = TakeBf16(cursor, extents.keys * extents.queries);
  }
  int64_t bytes() const { return cursor.bytes(); }

  AmxExtents extents;
  BlockCursor cursor;
  // Of one query head.
  Bf16* queries;        // panels over queries of D (q^T)
  Bf16* d_output;       // panels over queries of D (do^T)
  Bf16* query_rows;     // panels over D of the queries of a block, block after block
  Bf16* d_output_rows;  // the same of do
  float* d_queries;     // tiles [D][queries]: dq^T, without the factor scale; by tiles of queries
  float* lse;           // [S], base 2
  float* delta;         // [S] rowsum(do * o)
  // Of the key/value head.
  float* d_keys;    // tiles [keys][D], without the factor scale
  float* d_values;  // tiles [keys][D]
  // Of one block of keys.
  Bf16* keys;         // strips over keys of D
  Bf16* values;       // strips over keys of D
  Bf16* key_columns;  // strips over D of keys (k^T)
  // Of one block of keys and queries.
  float* logits;           // [keys][queries]
  float* d_probabilities;  // [keys][queries]
  Bf16* probabilities;     // strips over keys of queries (P^T)
  Bf16* d_logits;          // strips over keys of queries (dS^T)
  Bf16* d_logit_panels;    // panels over queries of keys (dS^T)
};

// Both write the outputs that belong to one key/value head of one sequence, as ForwardKvHead and
// BackwardKvHead do.
// REQUIRES: args.shape.scale is not 0; bf16; a machine that offers InstructionSet::kAmxBf16.
void AmxForwardKvHead(const AttentionForwardArgs& args, int64_t batch, int64_t kv_head,
                      const AmxForwardBlocks& blocks);
void AmxBackwardKvHead(const AttentionBackwardArgs& args, int64_t batch, int64_t kv_head,
                       const AmxBackwardBlocks& blocks);

}  // namespace planc::host

#endif  // PLANC_KERNELS_ATTENTION_AMX_H_
