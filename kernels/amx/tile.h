// Intel Advanced Matrix Extensions (AMX): the tile registers that products of bf16 run on.
//
// A thread has eight tiles of 16 rows of 64 bytes. TDPBF16PS C, A, B adds to the 16 x 16 floats of
// C the product of A, 16 rows of 32 bf16, and B, 16 rows of 16 pairs of bf16: row p of B holds rows
// 2p and 2p + 1 of the right operand, side by side. For each element it forms two sums in order of
// p, of the even and of the odd places, with fused multiply-adds from zero; then it adds their sum
// to C. All of it in fp32 rounded to nearest even, with denormal operands and results taken as zero
// (Intel SDM, volume 2, TDPBF16PS).
#ifndef PLANC_KERNELS_AMX_TILE_H_
#define PLANC_KERNELS_AMX_TILE_H_

#include <cstdint>

#include "hwy/base.h"

// Around code for the tiles and the vectors of the same processors, after all includes.
#define PLANC_BEFORE_AMX                                                                   \
  HWY_PUSH_ATTRIBUTES(                                                                     \
      "amx-tile,amx-bf16,avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512bf16,bmi,bmi2," \
      "fma,avx2")
#define PLANC_AFTER_AMX HWY_POP_ATTRIBUTES

namespace planc::host {

inline constexpr int64_t kTileRows = 16;       // rows of A and of C
inline constexpr int64_t kTileColumns = 16;    // columns of B and of C
inline constexpr int64_t kTileDepth = 32;      // bf16 elements of one row of A
inline constexpr int64_t kTileBytes = 1024;    // of any tile
inline constexpr int64_t kTileRowBytes = 64;   // of any row of a tile
inline constexpr int64_t kTileElements = 512;  // of bf16
inline constexpr int64_t kTileFloats = 256;    // of a tile of C

// Gives all eight tiles of the calling thread their full size, and releases them at its end, so
// that the system has nothing to save for code that does not use them.
// REQUIRES: InstructionSet::kAmxBf16 is offered by this machine (kernels/instruction_set.h).
class TileScope {
 public:
  TileScope();
  ~TileScope();
  TileScope(const TileScope&) = delete;
  TileScope& operator=(const TileScope&) = delete;
};

}  // namespace planc::host

#endif  // PLANC_KERNELS_AMX_TILE_H_
