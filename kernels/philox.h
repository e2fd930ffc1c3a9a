// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011): random
// values as a function of a key and a counter, so that every rank of every mesh forms the same
// initial weights.
#ifndef PLANC_KERNELS_PHILOX_H_
#define PLANC_KERNELS_PHILOX_H_

#include <array>
#include <cstdint>
#include <string>

namespace planc::host {

// The generator itself: ten rounds over a 128-bit counter under a 64-bit key, least significant
// word first.
std::array<uint32_t, 4> Philox4x32(const std::array<uint32_t, 4>& counter,
                                   const std::array<uint32_t, 2>& key);

// Names one random tensor.
struct PhiloxKey {
  uint64_t seed = 0;            // of the run
  uint64_t parameter_hash = 0;  // XXH64 of the parameter's full name, seed 0
};
PhiloxKey MakePhiloxKey(uint64_t seed, const std::string& parameter_name);

// Element `global_element_index` of the standard normal tensor named by `key`; the index counts the
// whole parameter in row-major order, whatever shard asks. With
//   r = Philox4x32(counter = {index/4 low, high, hash low, high}, key = {seed low, high}),
//   u_k = (r_k + 0.5) / 2^32,
// elements 4i .. 4i+3 are, by Box and Muller (1958) in double, rounded to float at the end,
//   sqrt(-2 ln u_0) * {cos, sin}(2 pi u_1),   sqrt(-2 ln u_2) * {cos, sin}(2 pi u_3).
float NormalAt(const PhiloxKey& key, uint64_t global_element_index);

// out[i] = stddev * NormalAt(key, first + i), bit for bit.
void FillNormal(const PhiloxKey& key, uint64_t first, int64_t count, float stddev, float* out);

}  // namespace planc::host

#endif  // PLANC_KERNELS_PHILOX_H_
