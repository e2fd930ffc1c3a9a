#include <immintrin.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

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
constexpr float kLowest = -std::numeric_limits<float>::infinity();

// The maximum of row[i] * factor; NaNs may be left out.
inline float RowMaximum(const float* row, int64_t count, __m512 factor) {
  __m512 best = _mm512_set1_ps(kLowest);
  for (int64_t i = 0; i < count; i += kLanes) {
    const __m512 scaled = _mm512_mul_ps(_mm512_loadu_ps(row + i), factor);
    // The second operand is the result where one is a NaN.
    best = _mm512_mask_max_ps(best, FirstLanes(count - i), scaled, best);
  }
  return _mm512_reduce_max_ps(best);
}

// Rounds exp2(row[i] * factor - maximum) to bf16, for i < count, and zeros to the end of the step,
// into the steps of a strip; returns the sum before rounding.
inline float Probabilities(const float* row, int64_t count, __m512 factor, float maximum,
                           Bf16* strip) {
  const __m512 base = _mm512_set1_ps(maximum);
  __m512 sums[2] = {_mm512_setzero_ps(), _mm512_setzero_ps()};
  for (int64_t i = 0; i < count; i += 2 * kLanes) {
    __m512 p[2];
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      const int64_t at = i + half * kLanes;
      const __m512 scaled = _mm512_mul_ps(_mm512_loadu_ps(row + at), factor);
      p[half] = _mm512_maskz_mov_ps(FirstLanes(count - at), Exp2(_mm512_sub_ps(scaled, base)));
      sums[half] = _mm512_add_ps(sums[half], p[half]);
    }
    _mm512_store_si512(strip, RoundPairToBf16(p[0], p[1]));
    strip += kTileElements;
  }
  return _mm512_reduce_add_ps(_mm512_add_ps(sums[0], sums[1]));
}

// Turns the logits of row `r` of a block into probabilities relative to the new maximum, and
// rescales what the row has summed so far.
inline void UpdateRow(const AmxForwardBlocks& blocks, int64_t r, int64_t visible, __m512 factor,
                      bool is_first) {
  const int64_t keys = blocks.extents.keys, columns = blocks.extents.columns;
  const float* logits = blocks.logits + r * keys;
  const float before = is_first ? kLowest : blocks.maximum[r];
  const float now = std::max(before, RowMaximum(logits, visible, factor));
  // A row whose logits are all -inf so far: subtracting -inf would make NaN of them.
  const float base = now == kLowest ? 0.0f : now;
  float sum = is_first ? 0.0f : blocks.sum[r];
  if (!is_first && before != now) {
    const float shrink = _mm512_cvtss_f32(Exp2(_mm512_set1_ps(before - base)));
    sum *= shrink;
    float* output = blocks.output + r / kTileRows * kTileRows * columns + r % kTileRows * kLanes;
    for (int64_t i = 0; i < columns; i += kLanes) {
      float* const at = output + i * kTileRows;
      _mm512_store_ps(at, _mm512_mul_ps(_mm512_load_ps(at), _mm512_set1_ps(shrink)));
    }
  }
  Bf16* strip =
      blocks.probabilities + r / kTileRows * kTileRows * keys + r % kTileRows * kTileDepth;
  blocks.maximum[r] = now;
  blocks.sum[r] = sum + Probabilities(logits, visible, factor, base, strip);
}

// The queries of a block, `rows` from `query` on, against the keys from `key` on.
void ForwardBlock(const AttentionShape& s, int64_t query, int64_t rows, int64_t key,
                  const AmxForwardBlocks& blocks) {
  constexpr int64_t kStep = AmxExtents::kStep;
  const AmxExtents& e = blocks.extents;
  const __m512 factor = _mm512_set1_ps(s.scale * kLog2E);
  for (int64_t row = 0; row < rows; row += kStep) {
    const int64_t strips = rows - row > kTileRows ? 2 : 1;
    const int64_t end = std::min(rows, row + kStep);
    const int64_t keys = std::min(e.keys, std::min(s.sequence, query + end) - key);
    if (keys <= 0) continue;
    const TileBlock logits = {.left = blocks.queries + row * e.depth,
                              .left_stride = kTileRows * e.depth,
                              .right = blocks.keys + key * e.depth,
                              .right_stride = kTileColumns * e.depth,
                              .out = blocks.logits + row * e.keys,
                              .row_stride = kTileRows * e.keys,
                              .column_stride = kTileColumns,
                              .stride = e.keys};
    TileProducts(strips, RoundUp(keys, kTileColumns) / kTileColumns, e.depth / kTileDepth, false,
                 logits);
    for (int64_t r = row; r < end; ++r) {
      const int64_t visible = std::min(keys, query + r + 1 - key);
      UpdateRow(blocks, r, visible, factor, key == 0);
      // What of the rows' longest part this row has not written.
      Bf16* strip =
          blocks.probabilities + r / kTileRows * kTileRows * e.keys + r % kTileRows * kTileDepth;
      for (int64_t k = RoundUp(visible, kStep); k < keys; k += kStep) {
        _mm512_store_si512(strip + k * kTileRows, _mm512_setzero_si512());
      }
    }
    const TileBlock output = {.left = blocks.probabilities + row * e.keys,
                              .left_stride = kTileRows * e.keys,
                              .right = blocks.values + key * kTileColumns,
                              .right_stride = kTileColumns * e.sequence,
                              .out = blocks.output + row * e.columns,
                              .row_stride = kTileRows * e.columns,
                              .column_stride = kTileFloats,
                              .stride = kTileColumns};
    TileProducts(strips, e.columns / kTileColumns, RoundUp(keys, kStep) / kStep, key > 0, output);
  }
}

// One block of queries of one head: o and lse of those rows.
void ForwardQueries(const AttentionForwardArgs& args, int64_t batch, int64_t head, int64_t query,
                    const AmxForwardBlocks& blocks) {
  const AttentionShape& s = args.shape;
  const AmxExtents& e = blocks.extents;
  const HeadColumns columns(s, batch);
  const int64_t rows = std::min(e.queries, s.sequence - query);
  PackTileRows(static_cast<const Bf16*>(args.qkv) + columns.Query(head) + query * columns.stride,
               columns.stride, rows, s.head_dim, blocks.queries);
  for (int64_t key = 0; key < query + rows; key += e.keys) {
    ForwardBlock(s, query, rows, key, blocks);
  }
  Bf16* o = static_cast<Bf16*>(args.o) + columns.Output(head) + query * columns.output_stride;
  float* lse = args.lse + (batch * s.query_heads + head) * s.sequence + query;
  for (int64_t r = 0; r < rows; ++r) {
    const float* output =
        blocks.output + r / kTileRows * kTileRows * e.columns + r % kTileRows * kLanes;
    StoreTileRow(output, s.head_dim, 1.0f / blocks.sum[r], false, o + r * columns.output_stride);
    lse[r] = (blocks.maximum[r] + std::log2(blocks.sum[r])) * kLn2;
  }
}

}  // namespace

void AmxForwardKvHead(const AttentionForwardArgs& args, int64_t batch, int64_t kv_head,
                      const AmxForwardBlocks& blocks) {
  const TileScope tiles;
  const AttentionShape& s = args.shape;
  const HeadColumns columns(s, batch);
  const Bf16* qkv = static_cast<const Bf16*>(args.qkv);
  PackTileColumnsTransposed(qkv + columns.Key(kv_head), columns.stride, s.sequence, s.head_dim,
                            blocks.keys);
  PackTileColumns(qkv + columns.Value(kv_head), columns.stride, s.sequence, s.head_dim,
                  blocks.values);
  const int64_t group = s.query_heads / s.kv_heads;
  for (int64_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
    for (int64_t query = 0; query < s.sequence; query += blocks.extents.queries) {
      ForwardQueries(args, batch, head, query, blocks);
    }
  }
}

}  // namespace planc::host
PLANC_AFTER_AMX
