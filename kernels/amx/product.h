// Products of packed tiles, the inner loop of the matrix product and of attention on AMX.
#ifndef PLANC_KERNELS_AMX_PRODUCT_H_
#define PLANC_KERNELS_AMX_PRODUCT_H_

#include <cstdint>

#include "kernels/amx/tile.h"
#include "kernels/bf16.h"

namespace planc::host {

// One block of at most 2 x 2 tiles of C.
struct TileBlock {
  const Bf16* left;       // the first strip (kernels/amx/pack.h)
  int64_t left_stride;    // elements to the second strip
  const Bf16* right;      // the first panel
  int64_t right_stride;   // elements to the second panel
  float* out;             // tile (0, 0)
  int64_t row_stride;     // floats to the second row of tiles
  int64_t column_stride;  // floats to the second column of tiles
  int64_t stride;         // floats from row to row inside a tile
};

// out = left right, or += with `add`, over `steps` times 32 of the depth; `strips` and `panels` are
// 1 or 2. Two strips and two panels use every loaded tile twice. Every element is summed step by
// step, as if each step's TDPBF16PS were added to C in memory: where the depth is cut does not
// change it.
// REQUIRES: a TileScope of this thread.
void TileProduct(int64_t strips, int64_t panels, int64_t steps, bool add, const TileBlock& block);

// The same for any number of strips and panels, in blocks of 2 x 2 tiles.
void TileProducts(int64_t strips, int64_t panels, int64_t steps, bool add, const TileBlock& all);

}  // namespace planc::host

#endif  // PLANC_KERNELS_AMX_PRODUCT_H_
