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

// One block of C and one piece of the depth, with the three workspace blocks they use:
//   left   [rows / 12] groups of [12][depth], or of [depth][12] when A is stored transposed
//   right  [columns / 16] panels of [depth][16]
//   sums   [rows][columns rounded up to whole panels]
struct PackedPiece {
  const MatmulShape* shape;
  const void* a;
  const void* b;
  void* c;
  float* left;
  float* right;
  float* sums;
  int64_t row, rows;        // of C
  int64_t column, columns;  // of C
  int64_t p, depth;
};

// Rows that one work item multiplies with one panel.
constexpr int64_t kItemRows = 8 * kRowGroup;

}  // namespace planc::host

#endif  // PLANC_KERNELS_PACKED_MATMUL_ONCE_

HWY_BEFORE_NAMESPACE();
namespace planc::host {
namespace HWY_NAMESPACE {

template <class T>
void PackLeftAs(const PackedPiece& piece, int64_t group) {
  const MatmulShape& s = *piece.shape;
  const T* a = static_cast<const T*>(piece.a);
  const int64_t first = group * kRowGroup;
  const int64_t rows = std::min(kRowGroup, piece.rows - first);
  float* out = piece.left + first * piece.depth;
  if (s.transpose_a) {
    const T* source = a + piece.p * s.lda + piece.row + first;
    for (int64_t p = 0; p < piece.depth; ++p) {
      for (int64_t r = 0; r < rows; ++r) {
        out[p * kRowGroup + r] = ToFloat(source[p * s.lda + r]);
      }
    }
    return;
  }
  for (int64_t r = 0; r < rows; ++r) {
    const T* source = a + (piece.row + first + r) * s.lda + piece.p;
    LoadRow(source, piece.depth, 1.0f, out + r * piece.depth, piece.depth);
  }
}

template <class T>
void PackRightAs(const PackedPiece& piece, int64_t panel) {
  const MatmulShape& s = *piece.shape;
  const T* b = static_cast<const T*>(piece.b);
  const int64_t first = panel * kPanelWidth;
  const int64_t width = std::min(kPanelWidth, piece.columns - first);
  float* out = piece.right + first * piece.depth;
  if (s.transpose_b) {
    PackPanelTransposed(b + (piece.column + first) * s.ldb + piece.p, s.ldb, piece.depth, width,
                        out);
  } else {
    PackPanel(b + piece.p * s.ldb + piece.column + first, s.ldb, piece.depth, width, out);
  }
}

// Converts and rearranges rows [12 * group, 12 * group + 12) of the piece of A.
void PackLeft(const PackedPiece& piece, int64_t group) {
  if (piece.shape->a == DType::kF32) return PackLeftAs<float>(piece, group);
  PackLeftAs<Bf16>(piece, group);
}

// Converts and rearranges columns [16 * panel, 16 * panel + 16) of the piece of B.
void PackRight(const PackedPiece& piece, int64_t panel) {
  if (piece.shape->b == DType::kF32) return PackRightAs<float>(piece, panel);
  PackRightAs<Bf16>(piece, panel);
}

// Multiplies kItemRows rows of the piece with one panel; items are numbered panel by panel. The
// first piece of the depth writes the sums, later ones add to them.
void MultiplyItem(const PackedPiece& piece, int64_t item) {
  const int64_t items_per_panel = (piece.rows + kItemRows - 1) / kItemRows;
  const int64_t panel = item / items_per_panel;
  const int64_t begin = item % items_per_panel * kItemRows;
  const int64_t end = std::min(begin + kItemRows, piece.rows);
  const bool transposed = piece.shape->transpose_a;
  const int64_t stride = RoundUp(piece.columns, kPanelWidth);
  const float* right = piece.right + panel * kPanelWidth * piece.depth;
  for (int64_t row = begin; row < end; row += kStripRows) {
    const int64_t group = row / kRowGroup * kRowGroup;
    const float* left = piece.left + group * piece.depth;
    const LeftBlock block = transposed
                                ? LeftBlock{left + (row - group), 1, kRowGroup}
                                : LeftBlock{left + (row - group) * piece.depth, piece.depth, 1};
    float* sums = piece.sums + row * stride + panel * kPanelWidth;
    const int64_t rows = std::min<int64_t>(kStripRows, end - row);
    if (piece.p == 0) {
      PanelsProduct<false>(rows, piece.depth, 1, block, right, 0, sums, stride, 0);
    } else {
      PanelsProduct<true>(rows, piece.depth, 1, block, right, 0, sums, stride, 0);
    }
  }
}

template <class T>
void StoreSumsAs(const PackedPiece& piece, int64_t row) {
  const MatmulShape& s = *piece.shape;
  const float* sums = piece.sums + row * RoundUp(piece.columns, kPanelWidth);
  T* c = static_cast<T*>(piece.c) + (piece.row + row) * s.ldc + piece.column;
  if (s.accumulate) {
    AddRow(sums, static_cast<size_t>(piece.columns), c);
  } else {
    StoreRow(sums, piece.columns, 1.0f, c);
  }
}

// Moves one finished row of sums into C.
void StoreSums(const PackedPiece& piece, int64_t row) {
  if (piece.shape->c == DType::kF32) return StoreSumsAs<float>(piece, row);
  StoreSumsAs<Bf16>(piece, row);
}

}  // namespace HWY_NAMESPACE
}  // namespace planc::host
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace planc::host {
namespace {

HWY_EXPORT(PackLeft);
HWY_EXPORT(PackRight);
HWY_EXPORT(MultiplyItem);
HWY_EXPORT(StoreSums);

// Largest block of C. A right panel (16 KiB) stays in the first-level cache while the left block
// streams from the second level past it.
constexpr int64_t kMaxGroups = 64;
constexpr int64_t kMaxPanels = 32;
// Longest piece of the depth. Pieces are a function of k alone: they decide the order of sums.
constexpr int64_t kMaxDepth = 256;

constexpr int64_t CeilDivide(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Length of the fewest pieces of at most `limit` that cover `size`, all about equally long.
constexpr int64_t PieceSize(int64_t size, int64_t limit) {
  return CeilDivide(size, std::max<int64_t>(1, CeilDivide(size, limit)));
}

int64_t DepthStep(const MatmulShape& s) { return RoundUp(PieceSize(s.k, kMaxDepth), 4); }

// Size of a block of C in row groups and panels, and the depth of the pieces it is summed from.
struct BlockSize {
  int64_t groups, panels, depth;

  int64_t left() const { return groups * kRowGroup * depth; }
  int64_t right() const { return panels * kPanelWidth * depth; }
  int64_t sums() const { return groups * kRowGroup * panels * kPanelWidth; }
  int64_t bytes() const { return BlockBytes(left()) + BlockBytes(right()) + BlockBytes(sums()); }
};

// Blocks for a part of C of `groups` x `panels`: at most the largest ones, halved until they fit.
BlockSize ChooseBlock(int64_t groups, int64_t panels, int64_t depth, int64_t bytes) {
  BlockSize block = {PieceSize(groups, kMaxGroups), PieceSize(panels, kMaxPanels), depth};
  while (block.bytes() > bytes && (block.groups > 1 || block.panels > 1)) {
    if (block.groups * kRowGroup > block.panels * kPanelWidth) {
      block.groups = PieceSize(block.groups, CeilDivide(block.groups, 2));
    } else {
      block.panels = PieceSize(block.panels, std::max<int64_t>(1, block.panels / 2));
    }
  }
  return block;
}

// How C is cut into one rectangle per thread. Threads share nothing, so none waits for another;
// what two of them need of A or B, both pack.
struct Grid {
  Grid(const MatmulShape& s, int64_t bytes, int threads)
      : groups(CeilDivide(s.m, kRowGroup)), panels(CeilDivide(s.n, kPanelWidth)) {
    const int64_t smallest = BlockSize{1, 1, DepthStep(s)}.bytes();
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

// Sums one block of C over the whole depth and stores it.
void RunBlock(PackedPiece piece, int64_t depth_step) {
  const int64_t groups = CeilDivide(piece.rows, kRowGroup);
  const int64_t panels = CeilDivide(piece.columns, kPanelWidth);
  const int64_t items = panels * CeilDivide(piece.rows, kItemRows);
  const int64_t k = piece.shape->k;
  for (piece.p = 0; piece.p < k; piece.p += depth_step) {
    piece.depth = std::min(depth_step, k - piece.p);
    for (int64_t i = 0; i < panels; ++i) HWY_DYNAMIC_DISPATCH(PackRight)(piece, i);
    for (int64_t i = 0; i < groups; ++i) HWY_DYNAMIC_DISPATCH(PackLeft)(piece, i);
    for (int64_t i = 0; i < items; ++i) HWY_DYNAMIC_DISPATCH(MultiplyItem)(piece, i);
  }
  for (int64_t i = 0; i < piece.rows; ++i) HWY_DYNAMIC_DISPATCH(StoreSums)(piece, i);
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
    const BlockSize block =
        ChooseBlock(end_group - first_group, end_panel - first_panel, DepthStep(s), share);
    BlockCursor cursor(static_cast<char*>(context.workspace) + part * share);
    piece.left = cursor.Take(block.left());
    piece.right = cursor.Take(block.right());
    piece.sums = cursor.Take(block.sums());
    for (int64_t panel = first_panel; panel < end_panel; panel += block.panels) {
      const int64_t last_panel = std::min(panel + block.panels, end_panel);
      piece.column = panel * kPanelWidth;
      piece.columns = std::min(last_panel * kPanelWidth, s.n) - piece.column;
      for (int64_t group = first_group; group < end_group; group += block.groups) {
        const int64_t last_group = std::min(group + block.groups, end_group);
        piece.row = group * kRowGroup;
        piece.rows = std::min(last_group * kRowGroup, s.m) - piece.row;
        RunBlock(piece, block.depth);
      }
    }
  }

  int64_t workspace_bytes_;
};

}  // namespace

int64_t PackedMatmulWorkspaceBytes(const MatmulShape& s) {
  return ChooseBlock(CeilDivide(s.m, kRowGroup), CeilDivide(s.n, kPanelWidth), DepthStep(s),
                     std::numeric_limits<int64_t>::max())
      .bytes();
}

std::unique_ptr<Matmul> MakePackedMatmul(const MatmulShape& shape) {
  return std::make_unique<PackedMatmul>(shape);
}

}  // namespace planc::host
#endif  // HWY_ONCE
