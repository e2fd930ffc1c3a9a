#ifndef PLANC_SCHEMAS_WORKSPACE_H_
#define PLANC_SCHEMAS_WORKSPACE_H_

#include <algorithm>
#include <cstdint>

namespace planc {

// Workspace that plans reserve for one operation: pure functions of its shape, so that a plan does
// not depend on the machine.
// Kernels and libraries must get by with it (kernels/workspace_test.cc compares needs and budgets).

// Matrix products: fp32 copies of blocks of all three matrices.
constexpr int64_t MatmulWorkspaceBudget(int64_t m, int64_t n, int64_t k) {
  constexpr int64_t kLimit = int64_t{16} << 20;
  // sides beyond this reach kLimit; avoids overflow
  constexpr int64_t kLimitSide = int64_t{1} << 22;
  m = std::min(m, kLimitSide) + 16;
  n = std::min(n, kLimitSide) + 16;
  k = std::min(k, kLimitSide) + 16;
  return std::min(4 * (m * k + k * n + m * n) + 4096, kLimit);
}

// Sums over rows for gradients of norms and biases: fixed blocks of rows, added in order.
constexpr int64_t RowSumWorkspaceBudget(int64_t rows, int64_t columns) {
  constexpr int64_t kRowsPerBlock = 32;
  constexpr int64_t kMaxBlocks = 64;
  const int64_t blocks =
      std::clamp<int64_t>((rows + kRowsPerBlock - 1) / kRowsPerBlock, 1, kMaxBlocks);
  return blocks * columns * 4;
}

// Threads of one rank that attention may use at once; each needs its own blocks.
inline constexpr int kAttentionThreads = 4;

constexpr int64_t AttentionWorkspaceBudget(int64_t sequence, int64_t head_dim) {
  return kAttentionThreads * 4 * (8 * (sequence + 128) * (head_dim + 16) + (int64_t{1} << 16));
}

}  // namespace planc

#endif  // PLANC_SCHEMAS_WORKSPACE_H_
