// Plans reserve workspace by the budgets of schemas/workspace.h; every kernel must get by with
// them.
#include "schemas/workspace.h"

#include "gtest/gtest.h"
#include "kernels/attention.h"
#include "kernels/elementwise.h"
#include "kernels/matmul.h"
#include "kernels/norm.h"

namespace planc::host {
namespace {

constexpr int64_t kSizes[] = {1, 2, 7, 16, 31, 64, 100, 128, 384, 512, 1000, 2048, 8192, 50257};

TEST(Workspace, MatmulFitsItsBudget) {
  for (const int64_t m : kSizes) {
    for (const int64_t n : kSizes) {
      for (const int64_t k : kSizes) {
        MatmulShape shape;
        shape.m = m;
        shape.n = n;
        shape.k = k;
        EXPECT_LE(MatmulWorkspaceBytes(shape), MatmulWorkspaceBudget(m, n, k))
            << m << "x" << n << "x" << k;
      }
    }
  }
}

TEST(Workspace, RowSumsFitTheirBudget) {
  for (const int64_t rows : kSizes) {
    for (const int64_t columns : kSizes) {
      const auto budget = static_cast<size_t>(RowSumWorkspaceBudget(rows, columns));
      EXPECT_LE(RmsNormBackwardWorkspaceBytes(rows, columns), budget);
      EXPECT_LE(LayerNormBackwardWorkspaceBytes(rows, columns), 2 * budget);
      EXPECT_LE(HeadNormBackwardWorkspaceBytes(rows, 4, columns), budget);
      EXPECT_LE(BiasBackwardWorkspaceBytes(rows, columns), budget);
    }
  }
}

TEST(Workspace, AttentionFitsItsBudget) {
  for (const int64_t sequence : {1, 2, 17, 64, 128, 500, 2048, 8192}) {
    for (const int64_t head_dim : {2, 12, 32, 64, 128, 256}) {
      for (const int64_t group : {1, 4, 8}) {
        AttentionShape shape;
        shape.batch = 4;
        shape.sequence = sequence;
        shape.query_heads = 2 * group;
        shape.kv_heads = 2;
        shape.head_dim = head_dim;
        const int64_t budget = AttentionWorkspaceBudget(sequence, head_dim);
        EXPECT_LE(AttentionForwardWorkspaceBytes(shape, kAttentionThreads), budget)
            << sequence << " " << head_dim;
        EXPECT_LE(AttentionBackwardWorkspaceBytes(shape, kAttentionThreads), budget)
            << sequence << " " << head_dim;
      }
    }
  }
}

}  // namespace
}  // namespace planc::host
