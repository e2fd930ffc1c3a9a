// What the forward and the backward pass of attention share. Included once per vector target.
#if defined(PLANC_KERNELS_ATTENTION_BLOCK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLANC_KERNELS_ATTENTION_BLOCK_INL_H_
#undef PLANC_KERNELS_ATTENTION_BLOCK_INL_H_
#else
#define PLANC_KERNELS_ATTENTION_BLOCK_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "hwy/highway.h"
#include "kernels/attention_block.h"
#include "kernels/attention_layout.h"
#include "kernels/block_convert-inl.h"
#include "kernels/block_product-inl.h"

HWY_BEFORE_NAMESPACE();
namespace planc::host {
namespace HWY_NAMESPACE {

// 2^x for x <= 0; larger x count as 0, since they are rounding errors of logits minus their
// maximum. Results below the smallest normal number are 0. NaN gives NaN.
//
// 2^x = 2^n 2^f with n = round(x): 2^f by a polynomial through Chebyshev nodes of [-1/2, 1/2]
// (relative error 5.1e-9, and exact at 0), 2^n by adding n to the exponent. Adding 1.5 * 2^23
// rounds x to an integer and leaves that integer in the low bits of the sum.
HWY_INLINE FloatVec Exp2OfNonPositive(FloatVec x) {
  const FloatTag d;
  const BitsTag bits;
  const FloatVec round_constant = SetAll(0x1.8p23f);
  const FloatVec bounded = hn::Min(x, SetAll(0.0f));
  const FloatVec shifted = hn::Add(bounded, round_constant);
  const FloatVec f = hn::Sub(bounded, hn::Sub(shifted, round_constant));
  FloatVec poly = hn::MulAdd(SetAll(0.00015453162942118066f), f, SetAll(0.0013390863364648252f));
  poly = hn::MulAdd(poly, f, SetAll(0.009618082557285997f));
  poly = hn::MulAdd(poly, f, SetAll(0.05550357114219126f));
  poly = hn::MulAdd(poly, f, SetAll(0.2402265076056809f));
  poly = hn::MulAdd(poly, f, SetAll(0.6931471880262288f));
  poly = hn::MulAdd(poly, f, SetAll(1.0f));
  const auto exponent = hn::ShiftLeft<23>(hn::BitCast(bits, shifted));
  const FloatVec scaled = hn::BitCast(d, hn::Add(hn::BitCast(bits, poly), exponent));
  const FloatVec result = hn::IfThenZeroElse(hn::Lt(x, SetAll(-126.0f)), scaled);
  return hn::IfThenElse(hn::IsNaN(x), x, result);
}

// One tile: a block of queries against a block of keys.
struct Tile {
  int64_t query, queries;  // first of the sequence, and how many
  int64_t key, keys;

  // Keys of this tile that query `row` of the tile sees; 0 or less when it sees none.
  int64_t Visible(int64_t row) const { return std::min(keys, query + row + 1 - key); }

  // First query of the first row group that sees key `k` of the tile.
  int64_t FirstGroup(int64_t k) const {
    return std::max<int64_t>(0, key + k - query) / kRowGroup * kRowGroup;
  }
  // Keys that some query sees of the row group that `row` is in. What is computed and thrown away
  // above the diagonal goes by row groups and not by strips, so that it is the same whatever the
  // height of a strip is.
  int64_t VisibleToGroup(int64_t row) const {
    return Visible(std::min(queries, RoundUp(row + 1, kRowGroup)) - 1);
  }
  // Whether some query does not see some key.
  bool OnDiagonal() const { return Visible(0) < keys; }
};

// Whether rows [first, last) of a matrix [panel_rows, D], stored as panels over D, are finite.
inline bool RowsAreFinite(const float* panels, int64_t panel_rows, int64_t dim, int64_t first,
                          int64_t last) {
  const FloatVec zero = SetAll(0.0f);
  FloatVec nan_if_not = zero;
  for (int64_t column = 0; column < dim; column += kPanelWidth) {
    const float* panel = panels + column * panel_rows;
    for (int64_t i = first * kPanelWidth; i < last * kPanelWidth; i += kLanes) {
      nan_if_not = hn::MulAdd(LoadFull(panel + i), zero, nan_if_not);
    }
  }
  return hn::AllFalse(FloatTag(), hn::IsNaN(nan_if_not));
}

// logits[48][kKeyBlock] = rows[48][D] panels, where `panels` are those of a matrix [D, sequence].
// Only what some query of a row group sees is computed, in whole panels.
inline void TileLogits(const AttentionShape& shape, const Tile& tile, const float* rows,
                       const float* panels, float* logits) {
  const int64_t dim = shape.head_dim;
  for (int64_t k = 0; k < tile.keys; k += kPanelWidth) {
    const float* panel = panels + (tile.key + k) * dim;
    for (int64_t row = tile.FirstGroup(k); row < tile.queries; row += kStripRows) {
      StripProductOf<false>(std::min<int64_t>(kStripRows, tile.queries - row), dim,
                            LeftRows{rows + row * dim, dim}, panel, logits + row * kKeyBlock + k,
                            kKeyBlock);
    }
  }
}

// out[48][padded D] += weights[48][kKeyBlock] times the rows of the tile's keys, where `panels` are
// those of a matrix [sequence, D]. Queries skip the keys that no query of their row group sees; the
// weights of the others that they do not see are 0, and 0 times anything finite adds nothing.
inline void AddKeyProduct(const AttentionShape& shape, const Tile& tile, const float* weights,
                          const float* panels, float* out) {
  const int64_t padded_dim = RoundUp(shape.head_dim, kPanelWidth);
  const bool by_group =
      !tile.OnDiagonal() || RowsAreFinite(panels, shape.sequence, shape.head_dim,
                                          tile.key + std::max<int64_t>(0, tile.Visible(0)),
                                          tile.key + tile.Visible(tile.queries - 1));
  const int64_t strip = by_group ? kStripRows : 1;
  for (int64_t column = 0; column < padded_dim; column += kPanelWidth) {
    const float* panel = panels + column * shape.sequence + tile.key * kPanelWidth;
    for (int64_t row = tile.FirstGroup(0); row < tile.queries; row += strip) {
      const int64_t rows = std::min<int64_t>(strip, tile.queries - row);
      const int64_t depth = by_group ? tile.VisibleToGroup(row) : tile.Visible(row);
      if (depth <= 0) continue;
      StripProductOf<true>(rows, depth, LeftRows{weights + row * kKeyBlock, kKeyBlock}, panel,
                           out + row * padded_dim + column, padded_dim);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace planc::host
HWY_AFTER_NAMESPACE();

#endif  // PLANC_KERNELS_ATTENTION_BLOCK_INL_H_
