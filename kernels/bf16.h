#ifndef PLANC_KERNELS_BF16_H_
#define PLANC_KERNELS_BF16_H_

#include <bit>
#include <cstdint>

namespace planc {

// bfloat16: the upper half of an IEEE binary32 (1 sign, 8 exponent, 7 mantissa bits). Storage only:
// arithmetic is done in float.
struct Bf16 {
  uint16_t bits;
};
static_assert(sizeof(Bf16) == 2);

// Exact.
constexpr float ToFloat(Bf16 value) {
  return std::bit_cast<float>(static_cast<uint32_t>(value.bits) << 16);
}
constexpr float ToFloat(float value) { return value; }

// Rounds to nearest, ties to even; overflows to infinity; keeps denormals; a NaN stays a NaN, made
// quiet, with the upper bits of its payload.
constexpr Bf16 ToBf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const bool is_nan = (bits & 0x7fffffffu) > 0x7f800000u;
  if (is_nan) return Bf16{static_cast<uint16_t>((bits >> 16) | 0x40u)};
  const uint32_t round_bias = 0x7fffu + ((bits >> 16) & 1u);
  return Bf16{static_cast<uint16_t>((bits + round_bias) >> 16)};
}

// Conversion chosen by the element type: FromFloat<Bf16>(x) rounds, FromFloat<float>(x) is x.
template <typename T>
constexpr T FromFloat(float value);
template <>
constexpr float FromFloat<float>(float value) {
  return value;
}
template <>
constexpr Bf16 FromFloat<Bf16>(float value) {
  return ToBf16(value);
}

}  // namespace planc

#endif  // PLANC_KERNELS_BF16_H_
