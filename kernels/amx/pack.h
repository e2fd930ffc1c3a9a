// Rearranging bf16 operands into the tiles of kernels/amx/tile.h.
//
// Left operands become strips of 16 rows, one after another: [depth / 32][16 rows][32]. Right
// operands become panels of 16 columns, one after another: [depth / 32][16 pairs][16 columns][2].
// Depth is padded to whole tiles; elements past the end of rows, columns or depth are zero.
// `stride` counts elements from one row of the source to the next.
// REQUIRES: a machine that offers InstructionSet::kAmxBf16; outputs aligned to 64 bytes.
#ifndef PLANC_KERNELS_AMX_PACK_H_
#define PLANC_KERNELS_AMX_PACK_H_

#include <cstdint>

#include "kernels/bf16.h"

namespace planc::host {

// Strips of the rows of `source` [rows, depth].
void PackTileRows(const Bf16* source, int64_t stride, int64_t rows, int64_t depth, Bf16* strips);

// Strips of the columns of `source` [depth, columns]: of its transpose's rows.
void PackTileRowsTransposed(const Bf16* source, int64_t stride, int64_t depth, int64_t columns,
                            Bf16* strips);

// Panels of the columns of `source` [depth, columns].
void PackTileColumns(const Bf16* source, int64_t stride, int64_t depth, int64_t columns,
                     Bf16* panels);

// Panels of the rows of `source` [rows, depth]: of its transpose's columns.
void PackTileColumnsTransposed(const Bf16* source, int64_t stride, int64_t rows, int64_t depth,
                               Bf16* panels);

// destination[j] = row[j] * factor, or += with `add`, rounded once to bf16, for j < columns, where
// `row` is one row of tiles of C that follow each other: 16 floats of each.
void StoreTileRow(const float* row, int64_t columns, float factor, bool add, Bf16* destination);

// The same for one column of tiles that follow each other: destination[j] = column[16 * j] *
// factor.
void StoreTileColumn(const float* column, int64_t rows, float factor, Bf16* destination);

}  // namespace planc::host

#endif  // PLANC_KERNELS_AMX_PACK_H_
