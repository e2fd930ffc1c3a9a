#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/attention_block.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/attention_forward.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h, which includes this file once per target.
#include "hwy/highway.h"
#include "kernels/attention_block-inl.h"

HWY_BEFORE_NAMESPACE();
namespace planc::host {
namespace HWY_NAMESPACE {

// The maximum of row[0, count), +0 where it is a zero of either sign. NaN elements are ignored,
// Probabilities brings them back: the maximum instruction gives its second operand where one is
// NaN.
HWY_INLINE float RowMaximum(const float* row, int64_t count) {
  constexpr float kLowest = -std::numeric_limits<float>::infinity();
  constexpr int64_t kStep = kLanes;
  FloatVec best = SetAll(kLowest);
  int64_t i = 0;
  for (; i + kStep <= count; i += kStep) best = hn::Max(LoadFull(row + i), best);
  if (i < count) best = hn::Max(KeepFirst(LoadFull(row + i), count - i, kLowest), best);
  return hn::GetLane(hn::MaxOfLanes(FloatTag(), best)) + 0.0f;
}

// The sum of 16 lanes, in the same order for one vector of 16 as for two of 8.
HWY_INLINE float SumOfPanel(const FloatVec (&sums)[kPanelVectors]) {
  const hn::FixedTag<float, 8> d8;
  float lanes[kPanelWidth];
  for (int v = 0; v < kPanelVectors; ++v) StoreFull(sums[v], lanes + v * kLanes);
  return hn::GetLane(hn::SumOfLanes(d8, hn::Add(hn::LoadU(d8, lanes), hn::LoadU(d8, lanes + 8))));
}

// row[i] = exp2(row[i] - maximum) for i < count, 0 from there to the end of its panel and of the
// panels up to padded_count; returns their sum.
HWY_INLINE float Probabilities(float* row, int64_t count, int64_t padded_count, float maximum) {
  constexpr int64_t kStep = kLanes;
  FloatVec sums[kPanelVectors];
  for (FloatVec& sum : sums) sum = SetAll(0.0f);
  for (int64_t i = 0; i < padded_count; i += kPanelWidth) {
#pragma GCC unroll 2
    for (int v = 0; v < kPanelVectors; ++v) {
      const int64_t at = i + v * kStep;
      FloatVec p = Exp2OfNonPositive(hn::Sub(LoadFull(row + at), SetAll(maximum)));
      if (at + kStep > count) p = KeepFirst(p, std::max<int64_t>(0, count - at), 0.0f);
      StoreFull(p, row + at);
      sums[v] = hn::Add(sums[v], p);
    }
  }
  return SumOfPanel(sums);
}

HWY_INLINE void ScaleRow(float* row, int64_t count, float factor) {
  constexpr int64_t kStep = kLanes;
  for (int64_t i = 0; i < count; i += kStep) {
    StoreFull(hn::Mul(LoadFull(row + i), SetAll(factor)), row + i);
  }
}

// Turns the logits of one row of a tile into probabilities relative to the new maximum, and
// rescales what the row has summed so far.
HWY_INLINE void UpdateRow(float* logits, int64_t visible, int64_t padded_keys, int64_t padded_dim,
                          float* output, float* maximum, float* sum) {
  const float before = *maximum;
  const float now = std::max(before, RowMaximum(logits, visible));
  // A row whose logits are all -inf so far: subtracting -inf would make NaN of them.
  const float base = std::isinf(now) && now < 0.0f ? 0.0f : now;
  if (before != now) {
    const float shrink = std::exp2(before - base);
    *sum *= shrink;
    ScaleRow(output, padded_dim, shrink);
  }
  *maximum = now;
  *sum += Probabilities(logits, visible, padded_keys, base);
}

// The queries of a block against the keys of one tile. Each product goes panel by panel, so that a
// panel stays in the first-level cache while the strips of queries pass it.
void ForwardTile(const AttentionShape& shape, const Tile& tile, const ForwardHeadBlocks& blocks) {
  const int64_t padded_dim = RoundUp(shape.head_dim, kPanelWidth);
  TileLogits(shape, tile, blocks.queries, blocks.keys, blocks.logits);
  for (int64_t r = tile.FirstGroup(0); r < tile.queries; ++r) {
    UpdateRow(blocks.logits + r * kKeyBlock, std::max<int64_t>(0, tile.Visible(r)),
              RoundUp(tile.VisibleToGroup(r), kPanelWidth), padded_dim,
              blocks.output + r * padded_dim, blocks.maximum + r, blocks.sum + r);
  }
  AddKeyProduct(shape, tile, blocks.logits, blocks.values, blocks.output);
}

// One block of queries of one head: o and lse of those rows.
template <class T>
void ForwardQueries(const AttentionForwardArgs& args, int64_t batch, int64_t head, int64_t query,
                    const ForwardHeadBlocks& blocks) {
  const AttentionShape& s = args.shape;
  const HeadColumns columns(s, batch);
  const int64_t dim = s.head_dim;
  const int64_t padded_dim = RoundUp(dim, kPanelWidth);
  Tile tile = {query, std::min(kQueryBlock, s.sequence - query), 0, 0};
  const T* q = static_cast<const T*>(args.qkv) + columns.Query(head) + query * columns.stride;
  for (int64_t r = 0; r < tile.queries; ++r) {
    LoadRow(q + r * columns.stride, dim, s.scale * kLog2E, blocks.queries + r * dim, dim);
  }
  std::fill_n(blocks.output, tile.queries * padded_dim, 0.0f);
  std::fill_n(blocks.maximum, tile.queries, -std::numeric_limits<float>::infinity());
  std::fill_n(blocks.sum, tile.queries, 0.0f);
  for (tile.key = 0; tile.key < query + tile.queries; tile.key += kKeyBlock) {
    tile.keys = std::min(kKeyBlock, s.sequence - tile.key);
    ForwardTile(s, tile, blocks);
  }
  T* o = static_cast<T*>(args.o) + columns.Output(head) + query * columns.output_stride;
  float* lse = args.lse + (batch * s.query_heads + head) * s.sequence + query;
  for (int64_t r = 0; r < tile.queries; ++r) {
    StoreRow(blocks.output + r * padded_dim, dim, 1.0f / blocks.sum[r],
             o + r * columns.output_stride);
    lse[r] = (blocks.maximum[r] + std::log2(blocks.sum[r])) * kLn2;
  }
}

template <class T>
void ForwardKvHeadAs(const AttentionForwardArgs& args, int64_t batch, int64_t kv_head,
                     const ForwardHeadBlocks& blocks) {
  const AttentionShape& s = args.shape;
  const HeadColumns columns(s, batch);
  const T* qkv = static_cast<const T*>(args.qkv);
  PackRowsTransposed(qkv + columns.Key(kv_head), columns.stride, s.sequence, s.head_dim,
                     blocks.keys);
  PackColumns<kPanelWidth>(qkv + columns.Value(kv_head), columns.stride, s.sequence, s.head_dim,
                           kPanelWidth * s.sequence, blocks.values);
  const int64_t group = s.query_heads / s.kv_heads;
  for (int64_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
    for (int64_t query = 0; query < s.sequence; query += kQueryBlock) {
      ForwardQueries<T>(args, batch, head, query, blocks);
    }
  }
}

void ForwardKvHead(const AttentionForwardArgs& args, DType dtype, int64_t batch, int64_t kv_head,
                   const ForwardHeadBlocks& blocks) {
  if (dtype == DType::kF32) return ForwardKvHeadAs<float>(args, batch, kv_head, blocks);
  ForwardKvHeadAs<Bf16>(args, batch, kv_head, blocks);
}

}  // namespace HWY_NAMESPACE
}  // namespace planc::host
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace planc::host {

HWY_EXPORT(ForwardKvHead);

void ForwardKvHead(const AttentionForwardArgs& args, DType dtype, int64_t batch, int64_t kv_head,
                   const ForwardHeadBlocks& blocks) {
  HWY_DYNAMIC_DISPATCH(ForwardKvHead)(args, dtype, batch, kv_head, blocks);
}

}  // namespace planc::host
#endif  // HWY_ONCE
