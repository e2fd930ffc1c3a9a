#include <algorithm>
#include <cstdint>

#include "kernels/attention_block.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/attention_backward.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h, which includes this file once per target.
#include "hwy/highway.h"
#include "kernels/attention_block-inl.h"

HWY_BEFORE_NAMESPACE();
namespace planc::host {
namespace HWY_NAMESPACE {

// Turns logits into probabilities and gradients of probabilities into gradients of logits, both
// in place, for one row of a tile; keys the query does not see get 0 in both.
HWY_INLINE void DifferentiateRow(int64_t visible, float lse, float delta, float* probabilities,
                                 float* d_logits) {
  constexpr int64_t kStep = kLanes;
  int64_t i = 0;
  for (; i < visible; i += kStep) {
    FloatVec p = Exp2OfNonPositive(hn::Sub(LoadFull(probabilities + i), SetAll(lse)));
    FloatVec ds = hn::Mul(p, hn::Sub(LoadFull(d_logits + i), SetAll(delta)));
    if (i + kStep > visible) {
      p = KeepFirst(p, visible - i, 0.0f);
      ds = KeepFirst(ds, visible - i, 0.0f);
    }
    StoreFull(p, probabilities + i);
    StoreFull(ds, d_logits + i);
  }
  for (; i < kKeyBlock; i += kStep) {
    StoreFull(SetAll(0.0f), probabilities + i);
    StoreFull(SetAll(0.0f), d_logits + i);
  }
}

// The rows of probabilities and d_logits of a tile, and its part of dq = dS k.
void BackwardQueryTile(const AttentionShape& shape, const Tile& tile,
                       const BackwardHeadBlocks& blocks) {
  TileLogits(shape, tile, blocks.queries, blocks.keys, blocks.probabilities);
  TileLogits(shape, tile, blocks.d_output, blocks.values, blocks.d_logits);
  for (int64_t r = tile.FirstGroup(0); r < tile.queries; ++r) {
    DifferentiateRow(std::max<int64_t>(0, tile.Visible(r)), blocks.lse[r], blocks.delta[r],
                     blocks.probabilities + r * kKeyBlock, blocks.d_logits + r * kKeyBlock);
  }
  AddKeyProduct(shape, tile, blocks.d_logits, blocks.key_rows, blocks.d_queries);
}

// gradients += left^T right over the queries of a tile: dv of P and do, dk of dS and q. Queries
// before the first key of a row group of keys see none of it; those that see some of it have 0 in
// `left` for the others, and 0 times anything finite adds nothing.
void AddKeyGradients(const AttentionShape& shape, const Tile& tile, const float* left,
                     const float* right, float* gradients) {
  const int64_t padded_dim = RoundUp(shape.head_dim, kPanelWidth);
  const bool by_group =
      !tile.OnDiagonal() || RowsAreFinite(right, kQueryBlock, shape.head_dim, 0, tile.queries);
  const int64_t strip = by_group ? kStripRows : 1;
  for (int64_t column = 0; column < padded_dim; column += kPanelWidth) {
    const float* panel = right + column * kQueryBlock;
    float* out = gradients + column * shape.sequence + tile.key * kPanelWidth;
    for (int64_t key = 0; key < tile.keys; key += strip) {
      const int64_t first_key = by_group ? key / kRowGroup * kRowGroup : key;
      const int64_t first = std::max<int64_t>(0, tile.key + first_key - tile.query);
      if (first >= tile.queries) break;
      StripProductOf<true>(std::min<int64_t>(strip, tile.keys - key), tile.queries - first,
                           LeftColumns{left + first * kKeyBlock + key, kKeyBlock},
                           panel + first * kPanelWidth, out + key * kPanelWidth, kPanelWidth);
    }
  }
}

// Fills the blocks of one tile row: q, do, lse, delta; dq = 0.
template <class T>
void LoadQueries(const AttentionBackwardArgs& args, int64_t batch, int64_t head, const Tile& tile,
                 const BackwardHeadBlocks& blocks) {
  const AttentionShape& s = args.shape;
  const HeadColumns columns(s, batch);
  const int64_t dim = s.head_dim;
  const int64_t output_at = columns.Output(head) + tile.query * columns.output_stride;
  const T* q = static_cast<const T*>(args.qkv) + columns.Query(head) + tile.query * columns.stride;
  const T* o = static_cast<const T*>(args.o) + output_at;
  const T* d_o = static_cast<const T*>(args.d_o) + output_at;
  const float* lse = args.lse + (batch * s.query_heads + head) * s.sequence + tile.query;
  PackColumns<kPanelWidth>(q, columns.stride, tile.queries, dim, kPanelWidth * kQueryBlock,
                           blocks.query_panels);
  PackColumns<kPanelWidth>(d_o, columns.output_stride, tile.queries, dim, kPanelWidth * kQueryBlock,
                           blocks.d_output_panels);
  for (int64_t r = 0; r < tile.queries; ++r) {
    const T* d_o_row = d_o + r * columns.output_stride;
    LoadRow(q + r * columns.stride, dim, s.scale * kLog2E, blocks.queries + r * dim, dim);
    LoadRow(d_o_row, dim, 1.0f, blocks.d_output + r * dim, dim);
    LaneSum delta;
    ForEachPart(dim, [&](size_t part, size_t i, size_t count) PLANC_INLINE_BODY {
      delta.AddProduct(part, Load(d_o_row + i, count),
                       Load(o + r * columns.output_stride + i, count));
    });
    blocks.delta[r] = delta.Total();
    blocks.lse[r] = lse[r] * kLog2E;
  }
  std::fill_n(blocks.d_queries, tile.queries * RoundUp(dim, kPanelWidth), 0.0f);
}

// One block of queries of one head: dq of those rows, and their part of dk and dv.
template <class T>
void BackwardQueries(const AttentionBackwardArgs& args, int64_t batch, int64_t head, int64_t query,
                     const BackwardHeadBlocks& blocks) {
  const AttentionShape& s = args.shape;
  const HeadColumns columns(s, batch);
  Tile tile = {query, std::min(kQueryBlock, s.sequence - query), 0, 0};
  LoadQueries<T>(args, batch, head, tile, blocks);
  for (tile.key = 0; tile.key < query + tile.queries; tile.key += kKeyBlock) {
    tile.keys = std::min(kKeyBlock, s.sequence - tile.key);
    BackwardQueryTile(s, tile, blocks);
    AddKeyGradients(s, tile, blocks.probabilities, blocks.d_output_panels, blocks.d_values);
    AddKeyGradients(s, tile, blocks.d_logits, blocks.query_panels, blocks.d_keys);
  }
  T* dq = static_cast<T*>(args.dqkv) + columns.Query(head) + query * columns.stride;
  const int64_t padded_dim = RoundUp(s.head_dim, kPanelWidth);
  for (int64_t r = 0; r < tile.queries; ++r) {
    StoreRow(blocks.d_queries + r * padded_dim, s.head_dim, s.scale, dq + r * columns.stride);
  }
}

// Stores `panels` over D of keys, times `scale`, into one head's columns of dqkv.
template <class T>
void StorePanels(const AttentionShape& s, const float* panels, float scale, int64_t stride,
                 T* destination) {
  for (int64_t key = 0; key < s.sequence; ++key) {
    for (int64_t column = 0; column < s.head_dim; column += kPanelWidth) {
      StoreRow(panels + column * s.sequence + key * kPanelWidth,
               std::min(kPanelWidth, s.head_dim - column), scale,
               destination + key * stride + column);
    }
  }
}

template <class T>
void BackwardKvHeadAs(const AttentionBackwardArgs& args, int64_t batch, int64_t kv_head,
                      const BackwardHeadBlocks& blocks) {
  const AttentionShape& s = args.shape;
  const HeadColumns columns(s, batch);
  const T* k = static_cast<const T*>(args.qkv) + columns.Key(kv_head);
  const T* v = static_cast<const T*>(args.qkv) + columns.Value(kv_head);
  PackRowsTransposed(k, columns.stride, s.sequence, s.head_dim, blocks.keys);
  PackRowsTransposed(v, columns.stride, s.sequence, s.head_dim, blocks.values);
  PackColumns<kPanelWidth>(k, columns.stride, s.sequence, s.head_dim, kPanelWidth * s.sequence,
                           blocks.key_rows);
  const int64_t gradient_size = s.sequence * RoundUp(s.head_dim, kPanelWidth);
  std::fill_n(blocks.d_keys, gradient_size, 0.0f);
  std::fill_n(blocks.d_values, gradient_size, 0.0f);
  const int64_t group = s.query_heads / s.kv_heads;
  for (int64_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
    for (int64_t query = 0; query < s.sequence; query += kQueryBlock) {
      BackwardQueries<T>(args, batch, head, query, blocks);
    }
  }
  T* dqkv = static_cast<T*>(args.dqkv);
  StorePanels(s, blocks.d_keys, s.scale, columns.stride, dqkv + columns.Key(kv_head));
  StorePanels(s, blocks.d_values, 1.0f, columns.stride, dqkv + columns.Value(kv_head));
}

void BackwardKvHead(const AttentionBackwardArgs& args, DType dtype, int64_t batch, int64_t kv_head,
                    const BackwardHeadBlocks& blocks) {
  if (dtype == DType::kF32) return BackwardKvHeadAs<float>(args, batch, kv_head, blocks);
  BackwardKvHeadAs<Bf16>(args, batch, kv_head, blocks);
}

}  // namespace HWY_NAMESPACE
}  // namespace planc::host
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace planc::host {

HWY_EXPORT(BackwardKvHead);

void BackwardKvHead(const AttentionBackwardArgs& args, DType dtype, int64_t batch, int64_t kv_head,
                    const BackwardHeadBlocks& blocks) {
  HWY_DYNAMIC_DISPATCH(BackwardKvHead)(args, dtype, batch, kv_head, blocks);
}

}  // namespace planc::host
#endif  // HWY_ONCE
