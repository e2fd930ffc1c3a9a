#ifndef PLANC_COMPILER_SPEC_NEAREST_H_
#define PLANC_COMPILER_SPEC_NEAREST_H_

#include <cstdint>
#include <string>

namespace planc {

// Divisors of `number` next to `wanted`, the closest first: "4 or 8". At most one on each side,
// never `wanted` itself. REQUIRES: number > 0.
std::string NearestDivisors(int64_t number, int64_t wanted);

// Positive multiples of `factor` next to `wanted`, the closest first: "16 or 32".
// REQUIRES: factor > 0; wanted is no multiple of it.
std::string NearestMultiples(int64_t factor, int64_t wanted);

}  // namespace planc

#endif  // PLANC_COMPILER_SPEC_NEAREST_H_
