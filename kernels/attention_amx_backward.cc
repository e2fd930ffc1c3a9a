#include <immintrin.h>

#include <algorithm>
#include <cstdint>

#include "kernels/amx/pack.h"
#include "kernels/amx/product.h"
#include "kernels/amx/tile.h"
#include "kernels/amx/vector-inl.h"
#include "kernels/attention_amx.h"
#include "kernels/attention_layout.h"

PLANC_BEFORE_AMX
namespace planc::host {
namespace {

constexpr int64_t kLanes = 16;
constexpr int64_t kStep = AmxExtents::kStep;

// One block of keys against one block of queries.
struct KeyQueryBlock {
  int64_t key, keys;       // first of the sequence, and how many
  int64_t query, queries;  // whole steps; rows past the end of the sequence are zero

  // The first step of queries that sees some of the keys of a step at `k` of the block.
  int64_t FirstQuery(int64_t k) const { return std::max<int64_t>(0, key + k - query); }
};

// What two keys give for 32 queries: probabilities and gradients of logits, rounded, with zeros
// where a query does not see the key.
struct KeyRow {
  __m512i probabilities, d_logits;
};

// Of the key at row `k` of the block, from query `q` of the block on.
template <bool kAllSeen>
inline KeyRow DifferentiateKey(const AmxBackwardBlocks& blocks, const KeyQueryBlock& b,
                               int64_t sequence, __m512 factor, int64_t k, int64_t q) {
  const int64_t at = k * blocks.extents.queries + q;
  const int64_t first_seen = b.key + k - b.query - q;
  __m512 p[2], ds[2];
#pragma GCC unroll 2
  for (int half = 0; half < 2; ++half) {
    const int64_t i = half * kLanes;
    const __mmask16 seen = kAllSeen
                               ? 0xffff
                               : static_cast<__mmask16>(FirstLanes(sequence - b.query - q - i) &
                                                        ~FirstLanes(first_seen - i));
    const __m512 lse = _mm512_loadu_ps(blocks.lse + b.query + q + i);
    const __m512 delta = _mm512_loadu_ps(blocks.delta + b.query + q + i);
    const __m512 scaled = _mm512_mul_ps(_mm512_loadu_ps(blocks.logits + at + i), factor);
    // Larger exponents are rounding errors. The second operand is the result where one is a NaN.
    const __m512 exponent = _mm512_min_ps(_mm512_setzero_ps(), _mm512_sub_ps(scaled, lse));
    const __m512 dp = _mm512_loadu_ps(blocks.d_probabilities + at + i);
    const __m512 all = Exp2(exponent);
    p[half] = _mm512_maskz_mov_ps(seen, all);
    ds[half] = _mm512_maskz_mul_ps(seen, all, _mm512_sub_ps(dp, delta));
  }
  return {RoundPairToBf16(p[0], p[1]), RoundPairToBf16(ds[0], ds[1])};
}

// From logits and d_probabilities of two keys, at rows `k` and k + 1 of the block, and a step of
// queries: probabilities, d_logits and d_logit_panels.
template <bool kAllSeen>
inline void DifferentiateStep(const AmxBackwardBlocks& blocks, const KeyQueryBlock& b,
                              int64_t sequence, __m512 factor, int64_t k, int64_t q) {
  const AmxExtents& e = blocks.extents;
  const KeyRow even = DifferentiateKey<kAllSeen>(blocks, b, sequence, factor, k, q);
  const KeyRow odd = DifferentiateKey<kAllSeen>(blocks, b, sequence, factor, k + 1, q);
  const int64_t at =
      k / kTileRows * kTileRows * e.queries + k % kTileRows * kTileDepth + q * kTileRows;
  _mm512_store_si512(blocks.probabilities + at, even.probabilities);
  _mm512_store_si512(blocks.probabilities + at + kTileDepth, odd.probabilities);
  _mm512_store_si512(blocks.d_logits + at, even.d_logits);
  _mm512_store_si512(blocks.d_logits + at + kTileDepth, odd.d_logits);
  // Elements of the two rows in turn: of the first 16 queries, and of the others.
  const __m512i lanes = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
  const __m512i pairs = _mm512_or_si512(lanes, _mm512_slli_epi32(lanes, 16));
  const __m512i low = _mm512_or_si512(pairs, _mm512_set1_epi32(32 << 16));
  const __m512i high = _mm512_or_si512(low, _mm512_set1_epi32(16 << 16 | 16));
  Bf16* panel = blocks.d_logit_panels + q * e.keys + k * kTileColumns;
  _mm512_store_si512(panel, _mm512_permutex2var_epi16(even.d_logits, low, odd.d_logits));
  _mm512_store_si512(panel + kTileColumns * e.keys,
                     _mm512_permutex2var_epi16(even.d_logits, high, odd.d_logits));
}

void Differentiate(const AttentionShape& s, const KeyQueryBlock& b,
                   const AmxBackwardBlocks& blocks) {
  const __m512 factor = _mm512_set1_ps(s.scale * kLog2E);
  for (int64_t k = 0; k < b.keys; k += 2) {
    for (int64_t q = b.FirstQuery(k / kStep * kStep); q < b.queries; q += kStep) {
      const bool all_seen = b.query + q > b.key + k && b.query + q + kStep <= s.sequence;
      if (all_seen) {
        DifferentiateStep<true>(blocks, b, s.sequence, factor, k, q);
      } else {
        DifferentiateStep<false>(blocks, b, s.sequence, factor, k, q);
      }
    }
  }
}

// What lies behind the last key or query of the sequence in packed blocks is undefined, and no
// query sees it.

// out[keys][queries] = left right^T, with strips over the block's keys and panels over queries of
// D, for what queries see: logits of k and q, d_probabilities of v and do.
void KeyQueryProduct(const KeyQueryBlock& b, const AmxExtents& e, const Bf16* left,
                     const Bf16* right, float* out) {
  for (int64_t k = 0; k < b.keys; k += kStep) {
    const int64_t q = b.FirstQuery(k);
    if (q >= b.queries) break;
    const TileBlock block = {.left = left + k * e.depth,
                             .left_stride = kTileRows * e.depth,
                             .right = right + (b.query + q) * e.depth,
                             .right_stride = kTileColumns * e.depth,
                             .out = out + k * e.queries + q,
                             .row_stride = kTileRows * e.queries,
                             .column_stride = kTileColumns,
                             .stride = e.queries};
    TileProducts(2, (b.queries - q) / kTileColumns, e.depth / kTileDepth, false, block);
  }
}

// gradients[keys][D] += left right: dv of P^T and do, dk of dS^T and q.
void AddKeyGradients(const KeyQueryBlock& b, const AmxExtents& e, const Bf16* left,
                     const Bf16* right, float* gradients) {
  for (int64_t k = 0; k < b.keys; k += kStep) {
    const int64_t q = b.FirstQuery(k);
    if (q >= b.queries) break;
    const TileBlock block = {.left = left + k * e.queries + q * kTileRows,
                             .left_stride = kTileRows * e.queries,
                             .right = right + b.query * e.columns + q * kTileColumns,
                             .right_stride = kTileColumns * b.queries,
                             .out = gradients + (b.key + k) * e.columns,
                             .row_stride = kTileRows * e.columns,
                             .column_stride = kTileFloats,
                             .stride = kTileColumns};
    TileProducts(2, e.columns / kTileColumns, (b.queries - q) / kStep, true, block);
  }
}

// dq^T[D][queries] of a block, = or += k^T dS^T.
void AddQueryGradients(const KeyQueryBlock& b, const AmxBackwardBlocks& blocks) {
  const AmxExtents& e = blocks.extents;
  for (int64_t q = 0; q < b.queries; q += kStep) {
    const int64_t keys = std::min(b.keys, b.query + q + kStep - b.key);
    if (keys <= 0) continue;
    const TileBlock block = {.left = blocks.key_columns,
                             .left_stride = kTileRows * b.keys,
                             .right = blocks.d_logit_panels + q * e.keys,
                             .right_stride = kTileColumns * e.keys,
                             .out = blocks.d_queries + (b.query + q) * e.columns,
                             .row_stride = kTileFloats,
                             .column_stride = kTileColumns * e.columns,
                             .stride = kTileColumns};
    TileProducts(e.columns / kTileRows, 2, keys / kStep, b.key > 0, block);
  }
}

// The rows of do and o multiplied: delta of one query.
float RowDelta(const Bf16* d_o, const Bf16* o, int64_t dim) {
  __m512 sum = _mm512_setzero_ps();
  for (int64_t i = 0; i < dim; i += kLanes) {
    const __mmask16 mask = FirstLanes(dim - i);
    sum = _mm512_fmadd_ps(LoadBf16(mask, d_o + i), LoadBf16(mask, o + i), sum);
  }
  return _mm512_reduce_add_ps(sum);
}

// Fills the blocks of one query head.
void LoadHead(const AttentionBackwardArgs& args, int64_t batch, int64_t head,
              const AmxBackwardBlocks& blocks) {
  const AttentionShape& s = args.shape;
  const AmxExtents& e = blocks.extents;
  const HeadColumns columns(s, batch);
  const Bf16* q = static_cast<const Bf16*>(args.qkv) + columns.Query(head);
  const Bf16* o = static_cast<const Bf16*>(args.o) + columns.Output(head);
  const Bf16* d_o = static_cast<const Bf16*>(args.d_o) + columns.Output(head);
  const float* lse = args.lse + (batch * s.query_heads + head) * s.sequence;
  PackTileColumnsTransposed(q, columns.stride, s.sequence, s.head_dim, blocks.queries);
  PackTileColumnsTransposed(d_o, columns.output_stride, s.sequence, s.head_dim, blocks.d_output);
  for (int64_t query = 0; query < s.sequence; query += e.queries) {
    const int64_t rows = std::min(e.queries, s.sequence - query);
    PackTileColumns(q + query * columns.stride, columns.stride, rows, s.head_dim,
                    blocks.query_rows + query * e.columns);
    PackTileColumns(d_o + query * columns.output_stride, columns.output_stride, rows, s.head_dim,
                    blocks.d_output_rows + query * e.columns);
  }
  for (int64_t r = 0; r < s.sequence; ++r) {
    blocks.lse[r] = lse[r] * kLog2E;
    blocks.delta[r] =
        RowDelta(d_o + r * columns.output_stride, o + r * columns.output_stride, s.head_dim);
  }
  std::fill(blocks.lse + s.sequence, blocks.lse + e.sequence, 0.0f);
  std::fill(blocks.delta + s.sequence, blocks.delta + e.sequence, 0.0f);
}

// What one query head adds to the gradients; its own is left in blocks.d_queries.
void BackwardHead(const AttentionBackwardArgs& args, int64_t batch, int64_t kv_head,
                  const AmxBackwardBlocks& blocks) {
  const AttentionShape& s = args.shape;
  const AmxExtents& e = blocks.extents;
  const HeadColumns columns(s, batch);
  const Bf16* qkv = static_cast<const Bf16*>(args.qkv);
  for (int64_t key = 0; key < s.sequence; key += e.keys) {
    const int64_t rows = std::min(e.keys, s.sequence - key);
    KeyQueryBlock b = {key, RoundUp(rows, kStep), 0, 0};
    const Bf16* k = qkv + columns.Key(kv_head) + key * columns.stride;
    PackTileRows(k, columns.stride, rows, s.head_dim, blocks.keys);
    PackTileRows(qkv + columns.Value(kv_head) + key * columns.stride, columns.stride, rows,
                 s.head_dim, blocks.values);
    PackTileRowsTransposed(k, columns.stride, rows, s.head_dim, blocks.key_columns);
    for (b.query = key / e.queries * e.queries; b.query < s.sequence; b.query += e.queries) {
      b.queries = std::min(e.queries, e.sequence - b.query);
      KeyQueryProduct(b, e, blocks.keys, blocks.queries, blocks.logits);
      KeyQueryProduct(b, e, blocks.values, blocks.d_output, blocks.d_probabilities);
      Differentiate(s, b, blocks);
      AddKeyGradients(b, e, blocks.probabilities, blocks.d_output_rows, blocks.d_values);
      AddKeyGradients(b, e, blocks.d_logits, blocks.query_rows, blocks.d_keys);
      AddQueryGradients(b, blocks);
    }
  }
}

// Stores gradients [keys][D] times `factor` into one head's columns of dqkv.
void StoreKeyGradients(const AttentionShape& s, const AmxExtents& e, const float* gradients,
                       float factor, int64_t stride, Bf16* destination) {
  for (int64_t r = 0; r < s.sequence; ++r) {
    StoreTileRow(gradients + r / kTileRows * kTileRows * e.columns + r % kTileRows * kLanes,
                 s.head_dim, factor, false, destination + r * stride);
  }
}

}  // namespace

void AmxBackwardKvHead(const AttentionBackwardArgs& args, int64_t batch, int64_t kv_head,
                       const AmxBackwardBlocks& blocks) {
  const TileScope tiles;
  const AttentionShape& s = args.shape;
  const AmxExtents& e = blocks.extents;
  const HeadColumns columns(s, batch);
  std::fill_n(blocks.d_keys, e.sequence * e.columns, 0.0f);
  std::fill_n(blocks.d_values, e.sequence * e.columns, 0.0f);
  Bf16* dqkv = static_cast<Bf16*>(args.dqkv);
  const int64_t group = s.query_heads / s.kv_heads;
  for (int64_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
    LoadHead(args, batch, head, blocks);
    BackwardHead(args, batch, kv_head, blocks);
    for (int64_t r = 0; r < s.sequence; ++r) {
      const float* column =
          blocks.d_queries + r / kTileColumns * kTileColumns * e.columns + r % kTileColumns;
      StoreTileColumn(column, s.head_dim, s.scale, dqkv + columns.Query(head) + r * columns.stride);
    }
  }
  StoreKeyGradients(s, e, blocks.d_keys, s.scale, columns.stride, dqkv + columns.Key(kv_head));
  StoreKeyGradients(s, e, blocks.d_values, 1.0f, columns.stride, dqkv + columns.Value(kv_head));
}

}  // namespace planc::host
PLANC_AFTER_AMX
