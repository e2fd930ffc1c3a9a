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

// Panels that cover the head dimension.
HWY_INLINE int64_t DimPanels(const AttentionShape& shape) {
  return RoundUp(shape.head_dim, kPanelWidth) / kPanelWidth;
}

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

// One strip of queries of a tile: its rows of probabilities and d_logits, and its part of dq.
void BackwardQueryStrip(const AttentionShape& shape, const Tile& tile, int64_t row,
                        const BackwardHeadBlocks& blocks) {
  const int64_t rows = std::min<int64_t>(kStripRows, tile.queries - row);
  const int64_t visible = tile.Visible(row + rows - 1);
  if (visible <= 0) return;
  const int64_t dim = shape.head_dim;
  const int64_t padded_dim = RoundUp(dim, kPanelWidth);
  const int64_t key_panels = RoundUp(visible, kPanelWidth) / kPanelWidth;
  float* probabilities = blocks.probabilities + row * kKeyBlock;
  float* d_logits = blocks.d_logits + row * kKeyBlock;
  PanelsProduct<false>(rows, dim, key_panels, LeftBlock{blocks.queries + row * dim, dim, 1},
                       blocks.keys + tile.key * dim, kPanelWidth * dim, probabilities, kKeyBlock,
                       kPanelWidth);
  PanelsProduct<false>(rows, dim, key_panels, LeftBlock{blocks.d_output + row * dim, dim, 1},
                       blocks.values + tile.key * dim, kPanelWidth * dim, d_logits, kKeyBlock,
                       kPanelWidth);
  for (int64_t r = 0; r < rows; ++r) {
    DifferentiateRow(std::max<int64_t>(0, tile.Visible(row + r)), blocks.lse[row + r],
                     blocks.delta[row + r], probabilities + r * kKeyBlock,
                     d_logits + r * kKeyBlock);
  }
  PanelsProduct<true>(rows, visible, DimPanels(shape), LeftBlock{d_logits, kKeyBlock, 1},
                      blocks.key_rows + tile.key * kPanelWidth, kPanelWidth * shape.sequence,
                      blocks.d_queries + row * padded_dim, padded_dim, kPanelWidth);
}

// One strip of keys of a tile: its part of dv = P^T do and dk = dS^T q. Queries before the first
// key of the strip see none of it.
void BackwardKeyStrip(const AttentionShape& shape, const Tile& tile, int64_t key,
                      const BackwardHeadBlocks& blocks) {
  const int64_t rows = std::min<int64_t>(kStripRows, tile.keys - key);
  const int64_t first = std::max<int64_t>(0, tile.key + key - tile.query);
  const int64_t depth = tile.queries - first;
  if (depth <= 0) return;
  const int64_t offset = first * kKeyBlock + key;
  const int64_t query_panel = kPanelWidth * kQueryBlock;
  const int64_t key_panel = kPanelWidth * shape.sequence;
  const int64_t out = (tile.key + key) * kPanelWidth;
  PanelsProduct<true>(rows, depth, DimPanels(shape),
                      LeftBlock{blocks.probabilities + offset, 1, kKeyBlock},
                      blocks.d_output_panels + first * kPanelWidth, query_panel,
                      blocks.d_values + out, kPanelWidth, key_panel);
  PanelsProduct<true>(rows, depth, DimPanels(shape),
                      LeftBlock{blocks.d_logits + offset, 1, kKeyBlock},
                      blocks.query_panels + first * kPanelWidth, query_panel, blocks.d_keys + out,
                      kPanelWidth, key_panel);
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
  PackColumns(q, columns.stride, tile.queries, dim, kQueryBlock, blocks.query_panels);
  PackColumns(d_o, columns.output_stride, tile.queries, dim, kQueryBlock, blocks.d_output_panels);
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
    for (int64_t row = 0; row < tile.queries; row += kStripRows) {
      BackwardQueryStrip(s, tile, row, blocks);
    }
    for (int64_t key = 0; key < tile.keys; key += kStripRows) {
      BackwardKeyStrip(s, tile, key, blocks);
    }
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
  PackColumns(k, columns.stride, s.sequence, s.head_dim, s.sequence, blocks.key_rows);
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
