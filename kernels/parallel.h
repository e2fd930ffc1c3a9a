// How host kernels divide their work among threads.
#ifndef PLANC_KERNELS_PARALLEL_H_
#define PLANC_KERNELS_PARALLEL_H_

#include <algorithm>
#include <cstdint>

#include "absl/functional/function_ref.h"

namespace planc::host {

// Calls body(begin, end) on consecutive ranges that cover [0, items), on up to `threads` threads,
// none with fewer than `grain` items (so small work stays on the calling thread, without OpenMP).
// The ranges depend on `threads`: body must compute each item by itself.
void ParallelFor(int threads, int64_t items, int64_t grain,
                 absl::FunctionRef<void(int64_t begin, int64_t end)> body);

// Rows that make a range worth a thread, for rows of `row_elements` elements.
inline int64_t RowGrain(int64_t row_elements) {
  constexpr int64_t kElementsPerThread = 16384;
  return std::max<int64_t>(1, kElementsPerThread / std::max<int64_t>(1, row_elements));
}

// ParallelFor over elements; ranges begin at multiples of 64 elements.
void ParallelElements(int threads, int64_t elements,
                      absl::FunctionRef<void(int64_t begin, int64_t end)> body);

// The fixed cut of `rows` rows for a sum over rows: each block is summed by itself in row order,
// then the blocks in block order. A function of `rows` alone, so the sum does not depend on the
// threads.
struct RowBlocks {
  explicit RowBlocks(int64_t rows_in) : rows(rows_in), count(Count(rows_in)) {}

  static int64_t Count(int64_t rows) {
    constexpr int64_t kRowsPerBlock = 32;
    constexpr int64_t kMaxBlocks = 64;
    return std::clamp<int64_t>((rows + kRowsPerBlock - 1) / kRowsPerBlock, 1, kMaxBlocks);
  }
  int64_t Begin(int64_t block) const { return rows * block / count; }
  int64_t End(int64_t block) const { return rows * (block + 1) / count; }

  int64_t rows;
  int64_t count;
};

}  // namespace planc::host

#endif  // PLANC_KERNELS_PARALLEL_H_
