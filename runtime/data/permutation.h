#ifndef PLANC_RUNTIME_DATA_PERMUTATION_H_
#define PLANC_RUNTIME_DATA_PERMUTATION_H_

#include <cstdint>

namespace planc {

// Position `index` of a pseudo-random permutation of 0 .. size - 1 that is named by (seed, epoch).
// Computed without a table: a Feistel network over the next even number of bits, walked until the
// result is below `size` (cycle walking; Black and Rogaway, "Ciphers with arbitrary finite
// domains", CT-RSA 2002).
// REQUIRES: 0 <= index < size <= 2^62.
int64_t PermutedIndex(int64_t index, int64_t size, uint64_t seed, uint64_t epoch);

}  // namespace planc

#endif  // PLANC_RUNTIME_DATA_PERMUTATION_H_
