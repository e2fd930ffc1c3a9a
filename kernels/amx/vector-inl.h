// Rows of fp32 to bf16 beside the tiles: AVX-512 (kernels/amx/tile.h).
#ifndef PLANC_KERNELS_AMX_VECTOR_INL_H_
#define PLANC_KERNELS_AMX_VECTOR_INL_H_

#include <immintrin.h>

#include <algorithm>
#include <cstdint>

#include "kernels/amx/tile.h"
#include "kernels/bf16.h"

PLANC_BEFORE_AMX
namespace planc::host {

// Rounds as ToBf16 does; VCVTNEPS2BF16 would turn denormals into zeros.
inline __m256i RoundToBf16(__m512 values) {
  const __m512i bits = _mm512_castps_si512(values);
  const __m512i upper = _mm512_srli_epi32(bits, 16);
  const __m512i is_odd = _mm512_and_si512(upper, _mm512_set1_epi32(1));
  const __m512i bias = _mm512_add_epi32(is_odd, _mm512_set1_epi32(0x7fff));
  const __m512i rounded = _mm512_srli_epi32(_mm512_add_epi32(bits, bias), 16);
  const __m512i quiet = _mm512_or_si512(upper, _mm512_set1_epi32(0x40));
  const __mmask16 is_nan = _mm512_cmp_ps_mask(values, values, _CMP_UNORD_Q);
  return _mm512_cvtepi32_epi16(_mm512_mask_mov_epi32(rounded, is_nan, quiet));
}

// The values of the elements in the mask; 0 for the others, which are not read.
inline __m512 LoadBf16(__mmask16 mask, const Bf16* from) {
  const __m256i bits = _mm256_maskz_loadu_epi16(mask, from);
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
}

// Lanes below `count`.
inline __mmask16 FirstLanes(int64_t count) {
  return static_cast<__mmask16>((uint32_t{1} << std::clamp<int64_t>(count, 0, 16)) - 1);
}

}  // namespace planc::host
PLANC_AFTER_AMX

#endif  // PLANC_KERNELS_AMX_VECTOR_INL_H_
