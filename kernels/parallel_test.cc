#include "kernels/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <vector>

namespace planc::host {
namespace {

TEST(ParallelFor, VisitsEveryItemOnce) {
  for (int threads : {1, 2, 5}) {
    for (int64_t items : {0, 1, 2, 7, 1000}) {
      std::vector<std::atomic<int>> visits(items);
      ParallelFor(threads, items, 1, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) ++visits[i];
      });
      for (const auto& count : visits) EXPECT_EQ(count, 1);
    }
  }
}

TEST(ParallelFor, KeepsSmallWorkOnOneThread) {
  std::atomic<int> calls = 0;
  ParallelFor(8, 99, 50, [&](int64_t, int64_t) { ++calls; });
  EXPECT_EQ(calls, 1);
  calls = 0;
  ParallelFor(8, 100, 50, [&](int64_t, int64_t) { ++calls; });
  EXPECT_EQ(calls, 2);
}

TEST(ParallelElements, CutsAtCacheLines) {
  for (int64_t elements : {1, 63, 64, 65, 100000}) {
    std::atomic<int64_t> total = 0;
    ParallelElements(3, elements, [&](int64_t begin, int64_t end) {
      EXPECT_EQ(begin % 64, 0);
      total += end - begin;
    });
    EXPECT_EQ(total, elements);
  }
}

TEST(RowBlocks, CoverTheRowsInOrder) {
  for (int64_t rows : {1, 31, 33, 100, 2048, 100000}) {
    const RowBlocks blocks(rows);
    EXPECT_LE(blocks.count, 64);
    EXPECT_EQ(blocks.Begin(0), 0);
    EXPECT_EQ(blocks.End(blocks.count - 1), rows);
    for (int64_t block = 1; block < blocks.count; ++block) {
      EXPECT_EQ(blocks.Begin(block), blocks.End(block - 1));
      EXPECT_LT(blocks.Begin(block), blocks.End(block));
    }
  }
}

}  // namespace
}  // namespace planc::host
