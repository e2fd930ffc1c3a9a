#include "kernels/amx/product.h"

#include <immintrin.h>

#include <cstdint>

#include "kernels/amx/tile.h"

PLANC_BEFORE_AMX
namespace planc::host {
namespace {

// The intrinsics do not tell the compiler that they read memory.
inline void FinishStores() { __asm__ volatile("" ::: "memory"); }

// The strips from `a` and the panels from `b` into `c0`, at the distances of `block`. Tiles 0 to 3
// hold C, 4 and 5 the strips, 6 and 7 the panels.
template <int kStrips, int kPanels>
HWY_NOINLINE void Product(int64_t steps, bool add, const TileBlock& block, const Bf16* a,
                          const Bf16* b, float* c0) {
  const int64_t stride = block.stride * static_cast<int64_t>(sizeof(float));
  float* const c1 = c0 + block.row_stride;
  FinishStores();
  if (add) {
    _tile_loadd(0, c0, stride);
    if constexpr (kPanels == 2) _tile_loadd(1, c0 + block.column_stride, stride);
    if constexpr (kStrips == 2) _tile_loadd(2, c1, stride);
    if constexpr (kStrips * kPanels == 4) _tile_loadd(3, c1 + block.column_stride, stride);
  } else {
    _tile_zero(0);
    if constexpr (kPanels == 2) _tile_zero(1);
    if constexpr (kStrips == 2) _tile_zero(2);
    if constexpr (kStrips * kPanels == 4) _tile_zero(3);
  }
  for (int64_t step = 0; step < steps; ++step) {
    _tile_loadd(4, a, kTileRowBytes);
    _tile_loadd(6, b, kTileRowBytes);
    _tile_dpbf16ps(0, 4, 6);
    if constexpr (kPanels == 2) {
      _tile_loadd(7, b + block.right_stride, kTileRowBytes);
      _tile_dpbf16ps(1, 4, 7);
    }
    if constexpr (kStrips == 2) {
      _tile_loadd(5, a + block.left_stride, kTileRowBytes);
      _tile_dpbf16ps(2, 5, 6);
    }
    if constexpr (kStrips * kPanels == 4) _tile_dpbf16ps(3, 5, 7);
    a += kTileElements;
    b += kTileElements;
  }
  _tile_stored(0, c0, stride);
  if constexpr (kPanels == 2) _tile_stored(1, c0 + block.column_stride, stride);
  if constexpr (kStrips == 2) _tile_stored(2, c1, stride);
  if constexpr (kStrips * kPanels == 4) _tile_stored(3, c1 + block.column_stride, stride);
}

// Chooses by the tiles that there are.
inline void ProductOf(int64_t strips, int64_t panels, int64_t steps, bool add,
                      const TileBlock& block, const Bf16* a, const Bf16* b, float* c) {
  if (strips >= 2) {
    if (panels >= 2) return Product<2, 2>(steps, add, block, a, b, c);
    return Product<2, 1>(steps, add, block, a, b, c);
  }
  if (panels >= 2) return Product<1, 2>(steps, add, block, a, b, c);
  Product<1, 1>(steps, add, block, a, b, c);
}

}  // namespace

void TileProduct(int64_t strips, int64_t panels, int64_t steps, bool add, const TileBlock& block) {
  ProductOf(strips, panels, steps, add, block, block.left, block.right, block.out);
}

void TileProducts(int64_t strips, int64_t panels, int64_t steps, bool add, const TileBlock& all) {
  for (int64_t j = 0; j < panels; j += 2) {
    for (int64_t i = 0; i < strips; i += 2) {
      ProductOf(strips - i, panels - j, steps, add, all, all.left + i * all.left_stride,
                all.right + j * all.right_stride,
                all.out + i * all.row_stride + j * all.column_stride);
    }
  }
}

}  // namespace planc::host
PLANC_AFTER_AMX
