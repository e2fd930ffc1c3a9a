#include "runtime/data/permutation.h"

#include <bit>

namespace planc {
namespace {

constexpr int kRounds = 6;

// The finalizer of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): every input bit reaches every
// output bit.
uint64_t Mix(uint64_t value) {
  value += 0x9E3779B97F4A7C15u;
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9u;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EBu;
  return value ^ (value >> 31);
}

// A permutation of the numbers of 2 * `half` bits.
uint64_t Feistel(uint64_t value, int half, uint64_t key) {
  const uint64_t mask = (uint64_t{1} << half) - 1;
  uint64_t left = value >> half;
  uint64_t right = value & mask;
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t next =
        left ^ (Mix(key ^ Mix(right + (static_cast<uint64_t>(round) << 32))) & mask);
    left = right;
    right = next;
  }
  return (left << half) | right;
}

}  // namespace

int64_t PermutedIndex(int64_t index, int64_t size, uint64_t seed, uint64_t epoch) {
  const int bits = std::bit_width(static_cast<uint64_t>(size - 1));
  const int half = (bits + 1) / 2;
  const uint64_t key = Mix(Mix(seed) ^ epoch);
  uint64_t value = static_cast<uint64_t>(index);
  do {
    value = Feistel(value, half, key);
  } while (value >= static_cast<uint64_t>(size));
  return static_cast<int64_t>(value);
}

}  // namespace planc
