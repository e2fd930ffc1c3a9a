#ifndef PLANC_SCHEMAS_COLLECTIVE_H_
#define PLANC_SCHEMAS_COLLECTIVE_H_

#include <cstdint>

namespace planc {

// Elements of one member's chunk when `count` elements are split over `members`; the last chunks
// may be shorter or empty.
constexpr int64_t ChunkElements(int64_t count, int64_t members) {
  return (count + members - 1) / members;
}

// Scratch of a reduce-scatter with `count` elements per chunk: the chunks received from the other
// members, which are added in rank order so that the result does not depend on timing.
constexpr int64_t ReduceScatterScratchBytes(int64_t count, int64_t members, int64_t element_bytes) {
  return (members - 1) * count * element_bytes;
}

// Up to this size an all-reduce costs latency, not bandwidth.
inline constexpr int64_t kDirectAllReduceBytes = 16384;

// Whether an all-reduce exchanges whole vectors (one round) instead of chunks (two rounds).
constexpr bool AllReduceIsDirect(int64_t count, int64_t element_bytes) {
  return count * element_bytes <= kDirectAllReduceBytes;
}

// Scratch of an all-reduce over `count` elements: what the other members send at once, whole
// vectors or chunks of them.
constexpr int64_t AllReduceScratchBytes(int64_t count, int64_t members, int64_t element_bytes) {
  const int64_t received =
      AllReduceIsDirect(count, element_bytes) ? count : ChunkElements(count, members);
  return (members - 1) * received * element_bytes;
}

}  // namespace planc

#endif  // PLANC_SCHEMAS_COLLECTIVE_H_
