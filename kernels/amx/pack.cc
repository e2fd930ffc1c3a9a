#include "kernels/amx/pack.h"

#include <immintrin.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "kernels/amx/tile.h"
#include "kernels/amx/vector-inl.h"
#include "kernels/block_layout.h"

PLANC_BEFORE_AMX
namespace planc::host {
namespace {

// The lowest `count` bits, 0 <= count <= 32.
inline __mmask32 FirstBits(int64_t count) {
  return static_cast<__mmask32>((uint64_t{1} << count) - 1);
}

// Four rows of 16 bytes, `stride` elements apart, in the four quarters of one vector: loads with
// masks leave the port for shuffles free.
inline __m512i LoadQuarters(const Bf16* source, int64_t stride) {
  const auto row = [&](int64_t i) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(source + i * stride));
  };
  __m512i all = _mm512_castsi128_si512(row(0));
  all = _mm512_mask_broadcast_i32x4(all, 0x00f0, row(1));
  all = _mm512_mask_broadcast_i32x4(all, 0x0f00, row(2));
  return _mm512_mask_broadcast_i32x4(all, 0xf000, row(3));
}

// out[j][p] = source[p * stride + j] for 32 p and 8 j: every quarter of the vectors transposes
// eight rows of eight.
inline void TransposeThirtyTwoByEight(const Bf16* source, int64_t stride, Bf16* out) {
  __m512i rows[8], pairs[8], quads[8];
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) rows[i] = LoadQuarters(source + i * stride, 8 * stride);
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    pairs[i] = _mm512_unpacklo_epi16(rows[2 * i], rows[2 * i + 1]);
    pairs[i + 4] = _mm512_unpackhi_epi16(rows[2 * i], rows[2 * i + 1]);
  }
#pragma GCC unroll 2
  for (int half = 0; half < 8; half += 4) {
    quads[half] = _mm512_unpacklo_epi32(pairs[half], pairs[half + 1]);
    quads[half + 1] = _mm512_unpackhi_epi32(pairs[half], pairs[half + 1]);
    quads[half + 2] = _mm512_unpacklo_epi32(pairs[half + 2], pairs[half + 3]);
    quads[half + 3] = _mm512_unpackhi_epi32(pairs[half + 2], pairs[half + 3]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    const int low = i / 2 * 4 + i % 2;
    const __m512i even = _mm512_unpacklo_epi64(quads[low], quads[low + 2]);
    const __m512i odd = _mm512_unpackhi_epi64(quads[low], quads[low + 2]);
    _mm512_store_si512(out + 2 * i * kTileDepth, even);
    _mm512_store_si512(out + (2 * i + 1) * kTileDepth, odd);
  }
}

// A tile of B from 16 rows of 32 elements: out[p][j] = source[j * stride + 2p, 2p + 1].
inline void TransposePairs(const Bf16* source, int64_t stride, Bf16* out) {
#pragma GCC unroll 4
  for (int64_t p = 0; p < kTileDepth; p += 8) {
    __m512i rows[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) rows[i] = LoadQuarters(source + i * stride + p, 4 * stride);
    const __m512i low01 = _mm512_unpacklo_epi32(rows[0], rows[1]);
    const __m512i high01 = _mm512_unpackhi_epi32(rows[0], rows[1]);
    const __m512i low23 = _mm512_unpacklo_epi32(rows[2], rows[3]);
    const __m512i high23 = _mm512_unpackhi_epi32(rows[2], rows[3]);
    Bf16* to = out + p / 2 * 2 * kTileColumns;
    _mm512_store_si512(to, _mm512_unpacklo_epi64(low01, low23));
    _mm512_store_si512(to + 2 * kTileColumns, _mm512_unpackhi_epi64(low01, low23));
    _mm512_store_si512(to + 4 * kTileColumns, _mm512_unpacklo_epi64(high01, high23));
    _mm512_store_si512(to + 6 * kTileColumns, _mm512_unpackhi_epi64(high01, high23));
  }
}

// Two rows side by side: pairs of 16 columns.
inline __m512i Interleave(__m256i even, __m256i odd) {
  return _mm512_or_si512(_mm512_cvtepu16_epi32(even),
                         _mm512_slli_epi32(_mm512_cvtepu16_epi32(odd), 16));
}

// rows x columns elements in a block of kRows x kColumns that is zero elsewhere.
template <int64_t kRows, int64_t kColumns>
void CopyPadded(const Bf16* source, int64_t stride, int64_t rows, int64_t columns, Bf16* block) {
  std::memset(block, 0, kRows * kColumns * sizeof(Bf16));
  for (int64_t r = 0; r < rows; ++r) {
    std::memcpy(block + r * kColumns, source + r * stride, columns * sizeof(Bf16));
  }
}

}  // namespace

void PackTileRows(const Bf16* source, int64_t stride, int64_t rows, int64_t depth, Bf16* strips) {
  const int64_t padded_depth = RoundUp(depth, kTileDepth);
  const int64_t padded_rows = RoundUp(rows, kTileRows);
  const int64_t whole = depth / kTileDepth;
  for (int64_t r = 0; r < padded_rows; ++r) {
    Bf16* out = strips + r / kTileRows * kTileRows * padded_depth + r % kTileRows * kTileDepth;
    const Bf16* row = source + r * stride;
    if (r >= rows) {
      for (int64_t p = 0; p < padded_depth; p += kTileDepth) {
        _mm512_store_si512(out + p * kTileRows, _mm512_setzero_si512());
      }
      continue;
    }
    for (int64_t step = 0; step < whole; ++step) {
      _mm512_store_si512(out + step * kTileElements, _mm512_loadu_si512(row + step * kTileDepth));
    }
    if (padded_depth > whole * kTileDepth) {
      _mm512_store_si512(out + whole * kTileElements,
                         _mm512_maskz_loadu_epi16(FirstBits(depth - whole * kTileDepth),
                                                  row + whole * kTileDepth));
    }
  }
}

void PackTileRowsTransposed(const Bf16* source, int64_t stride, int64_t depth, int64_t columns,
                            Bf16* strips) {
  constexpr int64_t kStep = 8;
  const int64_t padded_depth = RoundUp(depth, kTileDepth);
  const int64_t padded_columns = RoundUp(columns, kTileRows);
  for (int64_t p = 0; p < depth; p += kTileDepth) {
    const int64_t deep = std::min(kTileDepth, depth - p);
    for (int64_t j = 0; j < padded_columns; j += kStep) {
      Bf16* out = strips + j / kTileRows * kTileRows * padded_depth + p * kTileRows +
                  j % kTileRows * kTileDepth;
      const int64_t wide = std::clamp<int64_t>(columns - j, 0, kStep);
      if (deep == kTileDepth && wide == kStep) {
        TransposeThirtyTwoByEight(source + p * stride + j, stride, out);
        continue;
      }
      alignas(64) Bf16 block[kTileDepth * kStep];
      CopyPadded<kTileDepth, kStep>(source + p * stride + j, stride, deep, wide, block);
      TransposeThirtyTwoByEight(block, kStep, out);
    }
  }
}

void PackTileColumns(const Bf16* source, int64_t stride, int64_t depth, int64_t columns,
                     Bf16* panels) {
  // Panels side by side, so that rows are read in pieces of two cache lines.
  constexpr int64_t kColumnsAtOnce = 4 * kTileColumns;
  const int64_t padded_depth = RoundUp(depth, kTileDepth);
  for (int64_t begin = 0; begin < columns; begin += kColumnsAtOnce) {
    const int64_t end = std::min(begin + kColumnsAtOnce, columns);
    for (int64_t p = 0; p < padded_depth; p += 2) {
      const Bf16* even = source + p * stride;
      for (int64_t j = begin; j < end; j += kTileColumns) {
        const __mmask16 mask =
            static_cast<__mmask16>(FirstBits(std::min(kTileColumns, columns - j)));
        const __mmask16 even_mask = p < depth ? mask : 0, odd_mask = p + 1 < depth ? mask : 0;
        _mm512_store_si512(panels + j * padded_depth + p * kTileColumns,
                           Interleave(_mm256_maskz_loadu_epi16(even_mask, even + j),
                                      _mm256_maskz_loadu_epi16(odd_mask, even + stride + j)));
      }
    }
  }
}

void PackTileColumnsTransposed(const Bf16* source, int64_t stride, int64_t rows, int64_t depth,
                               Bf16* panels) {
  const int64_t padded_depth = RoundUp(depth, kTileDepth);
  for (int64_t j = 0; j < rows; j += kTileColumns) {
    const int64_t wide = std::min(kTileColumns, rows - j);
    for (int64_t p = 0; p < depth; p += kTileDepth) {
      const int64_t deep = std::min(kTileDepth, depth - p);
      const Bf16* from = source + j * stride + p;
      Bf16* out = panels + j * padded_depth + p * kTileColumns;
      if (wide == kTileColumns && deep == kTileDepth) {
        TransposePairs(from, stride, out);
        continue;
      }
      alignas(64) Bf16 block[kTileColumns * kTileDepth];
      CopyPadded<kTileColumns, kTileDepth>(from, stride, wide, deep, block);
      TransposePairs(block, kTileDepth, out);
    }
  }
}

void StoreTileRow(const float* row, int64_t columns, float factor, bool add, Bf16* destination) {
  for (int64_t j = 0; j < columns; j += kTileColumns) {
    const __mmask16 mask = FirstLanes(columns - j);
    __m512 values = _mm512_mul_ps(_mm512_loadu_ps(row), _mm512_set1_ps(factor));
    if (add) values = _mm512_add_ps(LoadBf16(mask, destination + j), values);
    _mm256_mask_storeu_epi16(destination + j, mask, RoundToBf16(values));
    row += kTileFloats;
  }
}

void StoreTileColumn(const float* column, int64_t rows, float factor, Bf16* destination) {
  const __m512i lanes = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
  const __m512i offsets = _mm512_slli_epi32(lanes, 4);
  for (int64_t j = 0; j < rows; j += kTileRows) {
    const __m512 values =
        _mm512_mul_ps(_mm512_i32gather_ps(offsets, column, sizeof(float)), _mm512_set1_ps(factor));
    _mm256_mask_storeu_epi16(destination + j, FirstLanes(rows - j), RoundToBf16(values));
    column += kTileFloats;
  }
}

}  // namespace planc::host
PLANC_AFTER_AMX
