#ifndef PLANC_COMPILER_SPEC_NEAREST_H_
#define PLANC_COMPILER_SPEC_NEAREST_H_

#include <cstdint>
#include <vector>

namespace planc {

// Divisors of `number` next to `wanted`, the closest first: {4, 8}. At most one on each side, never
// `wanted` itself. REQUIRES: number > 0.
std::vector<int64_t> NearestDivisors(int64_t number, int64_t wanted);

// All divisors of `number`, the closest to `wanted` first, by their ratio. REQUIRES: both > 0.
std::vector<int64_t> DivisorsByDistance(int64_t number, int64_t wanted);

// Positive multiples of `factor` next to `wanted`, the closest first: {16, 32}.
// REQUIRES: factor > 0; wanted is no multiple of it.
std::vector<int64_t> NearestMultiples(int64_t factor, int64_t wanted);

}  // namespace planc

#endif  // PLANC_COMPILER_SPEC_NEAREST_H_
