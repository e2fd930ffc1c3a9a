// Vectors of AVX-512 beside the tiles (kernels/amx/tile.h).
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

// Two vectors rounded to bf16, `low` first; denormals become zeros (VCVTNE2PS2BF16).
inline __m512i RoundPairToBf16(__m512 low, __m512 high) {
  return (__m512i)_mm512_cvtne2ps_pbh(high, low);
}

// 2^x within 9e-8 of its size, exact at 0: 2^floor(x) times a polynomial of degree 5 in the
// fraction, fitted for the least relative error over [0, 1]. NaN gives NaN.
inline __m512 Exp2(__m512 x) {
  constexpr int kFloor = 0x09;  // of VREDUCEPS: x - floor(x)
  const __m512 f = _mm512_reduce_ps(x, kFloor);
  __m512 poly = _mm512_fmadd_ps(_mm512_set1_ps(0.0018671300495043397f), f,
                                _mm512_set1_ps(0.009017030708491802f));
  poly = _mm512_fmadd_ps(poly, f, _mm512_set1_ps(0.05579991266131401f));
  poly = _mm512_fmadd_ps(poly, f, _mm512_set1_ps(0.24016444385051727f));
  poly = _mm512_fmadd_ps(poly, f, _mm512_set1_ps(0.6931512951850891f));
  poly = _mm512_fmadd_ps(poly, f, _mm512_set1_ps(1.0f));
  return _mm512_scalef_ps(poly, x);
}

// Lanes below `count`.
inline __mmask16 FirstLanes(int64_t count) {
  return static_cast<__mmask16>((uint32_t{1} << std::clamp<int64_t>(count, 0, 16)) - 1);
}

}  // namespace planc::host
PLANC_AFTER_AMX

#endif  // PLANC_KERNELS_AMX_VECTOR_INL_H_
