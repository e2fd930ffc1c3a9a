#include "kernels/packed_matmul.h"

#include <glog/logging.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/packed_matmul.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h, which includes this file once per target.
#include "hwy/highway.h"
#include "kernels/block_convert-inl.h"
#include "kernels/block_product-inl.h"

#ifndef PLANC_KERNELS_PACKED_MATMUL_ONCE_
#define PLANC_KERNELS_PACKED_MATMUL_ONCE_

namespace planc::host {

// One block of C and one piece of the depth, with the workspace blocks they use:
//   left   strips of kStripRows rows: [depth][kStripRows], rows past the end are zero
//   right  panels of 16 columns: [depth][16], columns past the end are zero
//   sums   [rows][columns rounded up to whole panels]; null where C itself holds the sums
struct PackedPiece {
  const MatmulShape* shape;
  const void* a;
  const void* b;
  void* c;
  float* left;
  float* right;
  float* sums;
  int64_t first_row;        // of the sums
  int64_t row, rows;        // of C
  int64_t column, columns;  // of C
  int64_t p, depth;
};

}  // namespace planc::host

#endif  // PLANC_KERNELS_PACKED_MATMUL_ONCE_

HWY_BEFORE_NAMESPACE();
namespace planc::host {
namespace HWY_NAMESPACE {

template <class T>
void PackLeftAs(const PackedPiece& piece) {
  const MatmulShape& s = *piece.shape;
  const T* a = static_cast<const T*>(piece.a);
  if (s.transpose_a) {
    PackColumns<kStripRows>(a + piece.p * s.lda + piece.row, s.lda, piece.depth, piece.rows,
                            piece.depth * kStripRows, piece.left);
    return;
  }
  for (int64_t first = 0; first < piece.rows; first += kStripRows) {
    const int64_t rows = std::min<int64_t>(kStripRows, piece.rows - first);
    PackStripTransposed(a + (piece.row + first) * s.lda + piece.p, s.lda, piece.depth, rows,
                        piece.left + first * piece.depth);
  }
}

template <class T>
void PackRightAs(const PackedPiece& piece) {
  const MatmulShape& s = *piece.shape;
  const T* b = static_cast<const T*>(piece.b);
  if (!s.transpose_b) {
    PackColumns<kPanelWidth>(b + piece.p * s.ldb + piece.column, s.ldb, piece.depth, piece.columns,
                             piece.depth * kPanelWidth, piece.right);
    return;
  }
  PackRowsTransposed(b + piece.column * s.ldb + piece.p, s.ldb, piece.columns, piece.depth,
                     piece.right);
}

// Converts and rearranges the rows of the piece of A.
void PackLeft(const PackedPiece& piece) {
  if (piece.shape->a == DType::kF32) return PackLeftAs<float>(piece);
  PackLeftAs<Bf16>(piece);
}

// Converts and rearranges the columns of the piece of B.
void PackRight(const PackedPiece& piece) {
  if (piece.shape->b == DType::kF32) return PackRightAs<float>(piece);
  PackRightAs<Bf16>(piece);
}

// One strip times the panels from `column` on, into `out`: whole ones at once, tiles at the edges
// of C through a whole tile.
template <bool kAdd>
HWY_INLINE void MultiplyStrip(const PackedPiece& piece, int64_t row, int64_t column, float* out,
                              int64_t stride) {
  const float* strip = piece.left + row * piece.depth;
  const int64_t rows = std::min<int64_t>(kStripRows, piece.rows - row);
  const int64_t panel_stride = kPanelWidth * piece.depth;
  const float* panel = piece.right + column * piece.depth;
  int64_t width = std::min(kPanelsAtOnce * kPanelWidth, piece.columns - column);
  if constexpr (kPanelsAtOnce == 2) {
    if (rows == kStripRows && width == 2 * kPanelWidth) {
      return PackedStripPairProduct<kAdd>(piece.depth, strip, panel, panel_stride, out, stride);
    }
  }
  for (; width > 0; width -= kPanelWidth) {
    const int64_t columns = std::min(kPanelWidth, width);
    if (rows == kStripRows && columns == kPanelWidth) {
      PackedStripProduct<kAdd>(piece.depth, strip, panel, out, stride);
    } else {
      float tile[kStripRows * kPanelWidth] = {};
      for (int64_t r = 0; kAdd && r < rows; ++r) {
        std::copy_n(out + r * stride, columns, tile + r * kPanelWidth);
      }
      PackedStripProduct<kAdd>(piece.depth, strip, panel, tile, kPanelWidth);
      for (int64_t r = 0; r < rows; ++r) {
        std::copy_n(tile + r * kPanelWidth, columns, out + r * stride);
      }
    }
    panel += panel_stride;
    out += kPanelWidth;
  }
}

// Multiplies the packed blocks. A panel stays in the first-level cache while the strips of the left
// block stream past it from the second level.
template <bool kAdd>
void MultiplyInto(const PackedPiece& piece, float* sums, int64_t stride) {
  for (int64_t column = 0; column < piece.columns; column += kPanelsAtOnce * kPanelWidth) {
    for (int64_t row = 0; row < piece.rows; row += kStripRows) {
      MultiplyStrip<kAdd>(piece, row, column, sums + row * stride + column, stride);
    }
  }
}

// The first piece of the depth writes the sums, later ones add to them.
void Multiply(const PackedPiece& piece) {
  const MatmulShape& s = *piece.shape;
  if (piece.sums == nullptr) {
    float* c = static_cast<float*>(piece.c) + piece.row * s.ldc + piece.column;
    if (s.accumulate || piece.p > 0) return MultiplyInto<true>(piece, c, s.ldc);
    return MultiplyInto<false>(piece, c, s.ldc);
  }
  const int64_t stride = RoundUp(piece.columns, kPanelWidth);
  float* sums = piece.sums + (piece.row - piece.first_row) * stride;
  if (piece.p > 0) return MultiplyInto<true>(piece, sums, stride);
  MultiplyInto<false>(piece, sums, stride);
}

// Moves the finished sums of `rows` rows into a bf16 C.
void StoreSums(const PackedPiece& piece, int64_t rows) {
  const MatmulShape& s = *piece.shape;
  for (int64_t row = 0; row < rows; ++row) {
    const float* sums = piece.sums + row * RoundUp(piece.columns, kPanelWidth);
    Bf16* c = static_cast<Bf16*>(piece.c) + (piece.first_row + row) * s.ldc + piece.column;
    if (s.accumulate) {
      AddRow(sums, static_cast<size_t>(piece.columns), c);
    } else {
      StoreRow(sums, piece.columns, 1.0f, c);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace planc::host
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace planc::host {
namespace {

HWY_EXPORT(PackLeft);
HWY_EXPORT(PackRight);
HWY_EXPORT(Multiply);
HWY_EXPORT(StoreSums);

// Largest blocks: of A, about 300 KiB, for the second-level cache; of B, about 1.5 MiB, for the
// last level; of sums, where C is bf16, as much.
constexpr int64_t kMaxGroups = 16;
constexpr int64_t kMaxPanels = 64;
constexpr int64_t kMaxSumGroups = 32;
// Longest piece of the depth. Pieces are a function of k alone: they decide the order of sums.
constexpr int64_t kMaxDepth = 384;

constexpr int64_t CeilDivide(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Length of the fewest pieces of at most `limit` that cover `size`, all about equally long.
constexpr int64_t PieceSize(int64_t size, int64_t limit) {
  return CeilDivide(size, std::max<int64_t>(1, CeilDivide(size, limit)));
}

int64_t DepthStep(const MatmulShape& s) { return RoundUp(PieceSize(s.k, kMaxDepth), 4); }

// Row groups and panels of the blocks, and the depth of the pieces they are summed from.
struct BlockSize {
  int64_t groups, panels, depth;
  int64_t sum_groups;  // of the block of sums; 0 where C holds the sums

  int64_t left() const { return groups * kRowGroup * depth; }
  int64_t right() const { return panels * kPanelWidth * depth; }
  int64_t sums() const { return sum_groups * kRowGroup * panels * kPanelWidth; }
  int64_t bytes() const { return BlockBytes(left()) + BlockBytes(right()) + BlockBytes(sums()); }
};

// Blocks for a part of C of `groups` x `panels`: at most the largest ones, halved until they fit.
BlockSize ChooseBlock(const MatmulShape& s, int64_t groups, int64_t panels, int64_t bytes) {
  BlockSize block = {PieceSize(groups, kMaxGroups), PieceSize(panels, kMaxPanels), DepthStep(s), 0};
  if (s.c != DType::kF32) block.sum_groups = PieceSize(groups, kMaxSumGroups);
  while (block.bytes() > bytes && (block.groups > 1 || block.panels > 1 || block.sum_groups > 1)) {
    if (block.sum_groups > block.groups) {
      block.sum_groups = CeilDivide(block.sum_groups, 2);
    } else if (block.groups * kRowGroup > block.panels * kPanelWidth) {
      block.groups = CeilDivide(block.groups, 2);
      block.sum_groups = std::min(block.sum_groups, block.groups);
    } else {
      block.panels = CeilDivide(block.panels, 2);
    }
  }
  return block;
}

// How C is cut into one rectangle per thread. Threads share nothing, so none waits for another;
// what two of them need of A or B, both pack.
struct Grid {
  Grid(const MatmulShape& s, int64_t bytes, int threads)
      : groups(CeilDivide(s.m, kRowGroup)), panels(CeilDivide(s.n, kPanelWidth)) {
    const int64_t smallest = ChooseBlock(s, 1, 1, 0).bytes();
    // A thread is worth waking for about ten microseconds of work.
    const int64_t worthwhile = s.m * s.n * s.k / (int64_t{1} << 18);
    const int64_t parts =
        std::clamp<int64_t>(std::min({groups * panels, bytes / smallest, worthwhile}), 1, threads);
    int64_t best = std::numeric_limits<int64_t>::max();
    for (int64_t candidate = 1; candidate <= parts; ++candidate) {
      if (parts % candidate != 0) continue;
      const int64_t rows = CeilDivide(groups, candidate) * kRowGroup;
      const int64_t columns = CeilDivide(panels, parts / candidate) * kPanelWidth;
      // Packing one element costs about as much as multiplying 16 pairs.
      const int64_t cost = rows * columns + 16 * (rows + columns);
      if (cost >= best) continue;
      best = cost;
      grid_rows = candidate;
      grid_columns = parts / candidate;
    }
  }
  int64_t parts() const { return grid_rows * grid_columns; }

  int64_t groups, panels;
  int64_t grid_rows = 1, grid_columns = 1;
};

// Computes `rows` rows of C from piece.first_row on, in the columns of the piece.
void RunColumns(PackedPiece piece, int64_t rows, const BlockSize& block) {
  const int64_t k = piece.shape->k;
  const int64_t end = piece.first_row + rows;
  for (piece.p = 0; piece.p < k; piece.p += block.depth) {
    piece.depth = std::min(block.depth, k - piece.p);
    HWY_DYNAMIC_DISPATCH(PackRight)(piece);
    for (piece.row = piece.first_row; piece.row < end; piece.row += block.groups * kRowGroup) {
      piece.rows = std::min(block.groups * kRowGroup, end - piece.row);
      HWY_DYNAMIC_DISPATCH(PackLeft)(piece);
      HWY_DYNAMIC_DISPATCH(Multiply)(piece);
    }
  }
  if (piece.sums != nullptr) HWY_DYNAMIC_DISPATCH(StoreSums)(piece, rows);
}

class PackedMatmul : public Matmul {
 public:
  explicit PackedMatmul(const MatmulShape& shape)
      : Matmul(shape), workspace_bytes_(MatmulWorkspaceBytes(shape)) {}

  void Run(const void* a, const void* b, void* c, KernelContext& context) override {
    CHECK_GE(static_cast<int64_t>(context.workspace_bytes), workspace_bytes_);
    const Grid grid(shape(), workspace_bytes_, context.threads);
    PackedPiece piece = {};
    piece.shape = &shape();
    piece.a = a;
    piece.b = b;
    piece.c = c;
    if (grid.parts() == 1) return RunPart(piece, grid, 0, context);
#pragma omp parallel for num_threads(context.threads) schedule(static, 1)
    for (int64_t part = 0; part < grid.parts(); ++part) RunPart(piece, grid, part, context);
  }

  std::string implementation() const override { return "packed"; }

 private:
  // Computes one rectangle of the grid with its share of the workspace.
  void RunPart(PackedPiece piece, const Grid& grid, int64_t part, const KernelContext& context) {
    const MatmulShape& s = shape();
    const int64_t i = part / grid.grid_columns;
    const int64_t j = part % grid.grid_columns;
    const int64_t first_group = grid.groups * i / grid.grid_rows;
    const int64_t end_group = grid.groups * (i + 1) / grid.grid_rows;
    const int64_t first_panel = grid.panels * j / grid.grid_columns;
    const int64_t end_panel = grid.panels * (j + 1) / grid.grid_columns;
    const int64_t share = workspace_bytes_ / grid.parts() / 64 * 64;
    const BlockSize block = ChooseBlock(s, end_group - first_group, end_panel - first_panel, share);
    BlockCursor cursor(static_cast<char*>(context.workspace) + part * share);
    piece.left = cursor.Take(block.left());
    piece.right = cursor.Take(block.right());
    if (block.sum_groups > 0) piece.sums = cursor.Take(block.sums());
    const int64_t row_step = block.sum_groups > 0 ? block.sum_groups : end_group - first_group;
    for (int64_t group = first_group; group < end_group; group += row_step) {
      piece.first_row = group * kRowGroup;
      const int64_t rows =
          std::min(std::min(group + row_step, end_group) * kRowGroup, s.m) - piece.first_row;
      for (int64_t panel = first_panel; panel < end_panel; panel += block.panels) {
        piece.column = panel * kPanelWidth;
        piece.columns =
            std::min(std::min(panel + block.panels, end_panel) * kPanelWidth, s.n) - piece.column;
        RunColumns(piece, rows, block);
      }
    }
  }

  int64_t workspace_bytes_;
};

}  // namespace

int64_t PackedMatmulWorkspaceBytes(const MatmulShape& s) {
  return ChooseBlock(s, CeilDivide(s.m, kRowGroup), CeilDivide(s.n, kPanelWidth),
                     std::numeric_limits<int64_t>::max())
      .bytes();
}

std::unique_ptr<Matmul> MakePackedMatmul(const MatmulShape& shape) {
  return std::make_unique<PackedMatmul>(shape);
}

}  // namespace planc::host
#endif  // HWY_ONCE
