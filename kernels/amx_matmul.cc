#include "kernels/amx_matmul.h"

#include <glog/logging.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>

#include "kernels/amx/pack.h"
#include "kernels/amx/product.h"
#include "kernels/amx/tile.h"
#include "kernels/bf16.h"
#include "kernels/block_layout.h"
#include "kernels/matmul_grid.h"

namespace planc::host {
namespace {

// Rows and columns of a block of C that stays in tiles.
constexpr int64_t kPairRows = 2 * kTileRows;
constexpr int64_t kPairColumns = 2 * kTileColumns;

// Largest blocks: of A and of the sums for the second-level cache together with what passes of B;
// a pair of panels (20 KiB) for the first level, beside a pair of strips.
constexpr int64_t kMaxRows = 256;
constexpr int64_t kMaxColumns = 1536;
constexpr int64_t kMaxDepth = 320;
constexpr int64_t kMaxSumRows = 512;

// Blocks of the workspace for products too small to have one, in bytes.
constexpr int64_t kLeastBlocks = 8192;

constexpr int64_t CeilDivide(int64_t a, int64_t b) { return (a + b - 1) / b; }

// About equal pieces of whole multiples of `unit`, at most `limit`.
constexpr int64_t PieceSize(int64_t size, int64_t limit, int64_t unit) {
  return RoundUp(CeilDivide(size, CeilDivide(size, limit)), unit);
}

// Extents of the blocks. The sums of a bf16 C stay in the workspace when the depth has several
// pieces. A right block holds all pieces of the depth where that fits, and is then packed only once
// for all rows.
struct AmxBlocks {
  int64_t rows, columns, depth;
  int64_t sum_rows;     // 0: there are no sums
  int64_t right_depth;  // `depth`, or the whole depth

  int64_t left_bytes() const { return rows * depth * 2; }
  int64_t right_bytes() const { return right_depth * columns * 2; }
  int64_t sum_bytes() const { return sum_rows * columns * 4; }
  int64_t bytes() const { return left_bytes() + right_bytes() + sum_bytes(); }

  // Blocks for `m` x `n` elements of C within `limit` bytes, which is at least kLeastBlocks.
  static AmxBlocks Choose(const MatmulShape& s, int64_t m, int64_t n, int64_t limit);
  // Makes the blocks a step smaller; false when they are the smallest.
  bool Shrink();
};

bool AmxBlocks::Shrink() {
  const auto halve = [](int64_t& size, int64_t unit) { size = RoundUp(CeilDivide(size, 2), unit); };
  if (right_depth > depth) {
    right_depth = depth;
  } else if (sum_rows > rows) {
    sum_rows = std::max(rows, RoundUp(sum_rows / 2, kPairRows));
  } else if (std::max(rows, columns) > kPairRows) {
    halve(rows > columns ? rows : columns, kPairRows);
    sum_rows = std::min(sum_rows, rows);
  } else if (depth > kTileDepth) {
    halve(depth, kTileDepth);
    right_depth = depth;
  } else {
    return false;
  }
  return true;
}

AmxBlocks AmxBlocks::Choose(const MatmulShape& s, int64_t m, int64_t n, int64_t limit) {
  AmxBlocks blocks;
  blocks.rows = PieceSize(m, kMaxRows, kPairRows);
  blocks.columns = PieceSize(n, kMaxColumns, kPairColumns);
  blocks.depth = PieceSize(s.k, kMaxDepth, kTileDepth);
  blocks.right_depth = blocks.depth;
  blocks.sum_rows = 0;
  if (s.c == DType::kBF16) {
    const int64_t whole = RoundUp(s.k, blocks.depth);
    if (whole * blocks.columns * 2 <= limit / 2) blocks.right_depth = whole;
    blocks.sum_rows =
        blocks.right_depth == whole ? blocks.rows : PieceSize(m, kMaxSumRows, kPairRows);
  }
  while (blocks.bytes() > limit && blocks.Shrink()) {
  }
  return blocks;
}

// One rectangle of C, of one thread, with its blocks.
struct AmxPart {
  const MatmulShape* shape;
  const Bf16* a;
  const Bf16* b;
  void* c;
  AmxBlocks blocks;
  Bf16* left;
  Bf16* right;
  float* sums;  // tiles of [16][16], by rows of tiles
};

// Rows or columns [begin, begin + size).
struct Range {
  int64_t begin, size;
};

void PackLeft(const AmxPart& part, const Range& rows, const Range& depth) {
  const MatmulShape& s = *part.shape;
  if (s.transpose_a) {
    return PackTileRowsTransposed(part.a + depth.begin * s.lda + rows.begin, s.lda, depth.size,
                                  rows.size, part.left);
  }
  PackTileRows(part.a + rows.begin * s.lda + depth.begin, s.lda, rows.size, depth.size, part.left);
}

void PackRight(const AmxPart& part, const Range& columns, const Range& depth, Bf16* right) {
  const MatmulShape& s = *part.shape;
  if (s.transpose_b) {
    return PackTileColumnsTransposed(part.b + columns.begin * s.ldb + depth.begin, s.ldb,
                                     columns.size, depth.size, right);
  }
  PackTileColumns(part.b + depth.begin * s.ldb + columns.begin, s.ldb, depth.size, columns.size,
                  right);
}

// out[r][j] = sums[r][j], + out[r][j] with `add`, for a block of C that is not whole.
void StoreEdge(const float* sums, int64_t rows, int64_t columns, float* out, int64_t stride) {
  for (int64_t r = 0; r < rows; ++r)
    std::copy_n(sums + r * kPairColumns, columns, out + r * stride);
}

// A block of C at the edge, or in bf16: through a block of 32 x 32 floats.
void MultiplyThroughBlock(const AmxPart& part, int64_t rows, int64_t columns, int64_t steps,
                          bool add, TileBlock block, float* c) {
  alignas(64) float whole[kPairRows * kPairColumns];
  const int64_t ldc = part.shape->ldc;
  if (add) {
    std::fill_n(whole, kPairRows * kPairColumns, 0.0f);
    for (int64_t r = 0; r < rows; ++r) {
      std::copy_n(c + r * ldc, columns, whole + r * kPairColumns);
    }
  }
  block.out = whole;
  block.stride = kPairColumns;
  block.row_stride = kTileRows * kPairColumns;
  block.column_stride = kTileColumns;
  TileProduct(CeilDivide(rows, kTileRows), CeilDivide(columns, kTileColumns), steps, add, block);
  StoreEdge(whole, rows, columns, c, ldc);
}

// Multiplies the packed blocks, into C or the sums. A pair of panels stays in the first-level cache
// while the strips pass it.
void Multiply(const AmxPart& part, const Range& rows, const Range& columns, int64_t depth, bool add,
              const Bf16* right, int64_t first_sum_row) {
  const int64_t padded_depth = RoundUp(depth, kTileDepth);
  const int64_t steps = padded_depth / kTileDepth;
  const int64_t ldc = part.shape->ldc;
  for (int64_t j = 0; j < columns.size; j += kPairColumns) {
    const int64_t wide = std::min(kPairColumns, columns.size - j);
    for (int64_t i = 0; i < rows.size; i += kPairRows) {
      const int64_t high = std::min(kPairRows, rows.size - i);
      TileBlock block = {};
      block.left = part.left + i * padded_depth;
      block.left_stride = kTileRows * padded_depth;
      block.right = right + j * padded_depth;
      block.right_stride = kTileColumns * padded_depth;
      if (part.sums != nullptr) {
        block.out =
            part.sums + (rows.begin - first_sum_row + i) * part.blocks.columns + j * kTileRows;
        block.stride = kTileColumns;
        block.row_stride = kTileRows * part.blocks.columns;
        block.column_stride = kTileFloats;
      } else {
        float* c = static_cast<float*>(part.c) + (rows.begin + i) * ldc + columns.begin + j;
        if (high < kPairRows || wide < kPairColumns) {
          MultiplyThroughBlock(part, high, wide, steps, add, block, c);
          continue;
        }
        block.out = c;
        block.stride = ldc;
        block.row_stride = kTileRows * ldc;
        block.column_stride = kTileColumns;
      }
      TileProduct(CeilDivide(high, kTileRows), CeilDivide(wide, kTileColumns), steps, add, block);
    }
  }
}

// Rounds the finished sums into C.
void StoreSums(const AmxPart& part, const Range& rows, const Range& columns) {
  const MatmulShape& s = *part.shape;
  for (int64_t r = 0; r < rows.size; ++r) {
    const float* sums =
        part.sums + r / kTileRows * kTileRows * part.blocks.columns + r % kTileRows * kTileColumns;
    Bf16* c = static_cast<Bf16*>(part.c) + (rows.begin + r) * s.ldc + columns.begin;
    StoreTileRow(sums, columns.size, 1.0f, s.accumulate, c);
  }
}

// Computes the rows and columns of C that share one block of sums, or one right block.
void RunColumns(const AmxPart& part, const Range& rows, const Range& columns, bool packed) {
  const int64_t k = part.shape->k;
  const AmxBlocks& blocks = part.blocks;
  const bool adds_to_c = part.sums == nullptr && part.shape->accumulate;
  for (int64_t p = 0; p < k; p += blocks.depth) {
    const Range depth = {p, std::min(blocks.depth, k - p)};
    const bool whole = blocks.right_depth > blocks.depth;
    Bf16* right = part.right + (whole ? p * blocks.columns : 0);
    if (!packed) PackRight(part, columns, depth, right);
    for (int64_t row = 0; row < rows.size; row += blocks.rows) {
      const Range some = {rows.begin + row, std::min(blocks.rows, rows.size - row)};
      PackLeft(part, some, depth);
      Multiply(part, some, columns, depth.size, adds_to_c || p > 0, right, rows.begin);
    }
  }
  if (part.sums != nullptr) StoreSums(part, rows, columns);
}

class AmxMatmul : public Matmul {
 public:
  explicit AmxMatmul(const MatmulShape& shape)
      : Matmul(shape), workspace_bytes_(MatmulWorkspaceBytes(shape)) {}

  void Run(const void* a, const void* b, void* c, KernelContext& context) override {
    CHECK_GE(static_cast<int64_t>(context.workspace_bytes), workspace_bytes_);
    const MatmulShape& s = shape();
    // A thread is worth waking for about ten microseconds of work, and for blocks of some size.
    const int64_t worthwhile = s.m * s.n * s.k / (int64_t{1} << 22);
    const int64_t threads =
        std::min<int64_t>({context.threads, worthwhile, workspace_bytes_ >> 17});
    // Packing one element costs about as much as multiplying 64 pairs.
    const MatmulGrid grid(CeilDivide(s.m, kPairRows), CeilDivide(s.n, kPairColumns), kPairRows,
                          kPairColumns, threads, 64);
    AmxPart part = {};
    part.shape = &s;
    part.a = static_cast<const Bf16*>(a);
    part.b = static_cast<const Bf16*>(b);
    part.c = c;
    if (grid.parts() > 1) {
#pragma omp parallel for num_threads(context.threads) schedule(static, 1)
      for (int64_t i = 0; i < grid.parts(); ++i) {
        const int64_t share = workspace_bytes_ / grid.parts() / 64 * 64;
        RunPart(part, grid, i, static_cast<char*>(context.workspace) + i * share, share);
      }
    } else if (workspace_bytes_ >= kLeastBlocks) {
      RunPart(part, grid, 0, static_cast<char*>(context.workspace), workspace_bytes_);
    } else {
      alignas(64) char blocks[kLeastBlocks];
      RunPart(part, grid, 0, blocks, kLeastBlocks);
    }
  }

  std::string implementation() const override { return "amx"; }

 private:
  // Computes one rectangle of the grid with its share of the workspace.
  void RunPart(AmxPart part, const MatmulGrid& grid, int64_t index, char* workspace,
               int64_t bytes) {
    const TileScope tiles;
    const MatmulShape& s = shape();
    const MatmulGrid::Part r = grid.PartOf(index);
    const int64_t first_row = r.first_group * kPairRows;
    const int64_t rows = std::min(r.end_group * kPairRows, s.m) - first_row;
    const int64_t first_column = r.first_panel * kPairColumns;
    const int64_t end_column = std::min(r.end_panel * kPairColumns, s.n);
    part.blocks = AmxBlocks::Choose(s, rows, end_column - first_column, bytes);
    part.right = reinterpret_cast<Bf16*>(workspace);
    part.left = reinterpret_cast<Bf16*>(workspace + part.blocks.right_bytes());
    if (part.blocks.sum_rows > 0) {
      part.sums = reinterpret_cast<float*>(workspace + part.blocks.right_bytes() +
                                           part.blocks.left_bytes());
    }
    const int64_t row_step = part.blocks.sum_rows > 0 ? part.blocks.sum_rows : rows;
    for (int64_t column = first_column; column < end_column; column += part.blocks.columns) {
      const Range columns = {column, std::min(part.blocks.columns, end_column - column)};
      for (int64_t row = 0; row < rows; row += row_step) {
        const bool packed = row > 0 && part.blocks.right_depth >= s.k;
        RunColumns(part, {first_row + row, std::min(row_step, rows - row)}, columns, packed);
      }
    }
  }

  int64_t workspace_bytes_;
};

}  // namespace

std::unique_ptr<Matmul> MakeAmxMatmul(const MatmulShape& shape) {
  return std::make_unique<AmxMatmul>(shape);
}

}  // namespace planc::host
