#include "kernels/parallel.h"

namespace planc::host {

void ParallelFor(int threads, int64_t items, int64_t grain,
                 absl::FunctionRef<void(int64_t begin, int64_t end)> body) {
  if (items <= 0) return;
  const int64_t ranges = std::clamp<int64_t>(items / std::max<int64_t>(1, grain), 1, threads);
  // All threads form the team, also those that get no range: when a team's size changes, OpenMP
  // ends threads, starts others and allocates.
  if (ranges == 1) return body(0, items);
#pragma omp parallel for num_threads(threads) schedule(static, 1)
  for (int64_t range = 0; range < ranges; ++range) {
    body(items * range / ranges, items * (range + 1) / ranges);
  }
}

void ParallelElements(int threads, int64_t elements,
                      absl::FunctionRef<void(int64_t begin, int64_t end)> body) {
  constexpr int64_t kBlock = 64;
  ParallelFor(
      threads, (elements + kBlock - 1) / kBlock, RowGrain(kBlock),
      [&](int64_t begin, int64_t end) { body(begin * kBlock, std::min(elements, end * kBlock)); });
}

}  // namespace planc::host
