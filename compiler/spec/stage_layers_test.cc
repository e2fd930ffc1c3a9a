#include "compiler/spec/stage_layers.h"

#include <numeric>
#include <vector>

#include "gtest/gtest.h"

namespace planc {
namespace {

using Layers = std::vector<int64_t>;

TEST(StageLayersTest, EvenSplit) {
  EXPECT_EQ(SplitLayers(4, 1, 1), Layers({4}));
  EXPECT_EQ(SplitLayers(32, 4, 1), Layers({8, 8, 8, 8}));
  EXPECT_EQ(SplitLayers(8, 2, 2), Layers({2, 2, 2, 2}));
}

TEST(StageLayersTest, EndsTakeFewer) {
  EXPECT_EQ(SplitLayers(7, 2, 1), Layers({4, 3}));
  EXPECT_EQ(SplitLayers(10, 4, 1), Layers({2, 3, 3, 2}));
  EXPECT_EQ(SplitLayers(9, 4, 1), Layers({2, 3, 2, 2}));
  EXPECT_EQ(SplitLayers(6, 2, 4), Layers({0, 1, 1, 1, 1, 1, 1, 0}));
}

TEST(StageLayersTest, SplitsThatDoNotExist) {
  EXPECT_TRUE(SplitLayers(3, 4, 1).empty());
  EXPECT_TRUE(SplitLayers(5, 2, 4).empty());
  EXPECT_TRUE(SplitLayers(1, 1 << 20, 65536).empty());
}

TEST(StageLayersTest, EverySplitIsSoundAndBalanced) {
  for (int64_t layers = 1; layers <= 40; ++layers) {
    for (int64_t pp = 1; pp <= 8; ++pp) {
      for (int64_t virtual_stages = 1; virtual_stages <= 4; ++virtual_stages) {
        const Layers split = SplitLayers(layers, pp, virtual_stages);
        if (split.empty()) continue;
        const int64_t chunks = pp * virtual_stages;
        ASSERT_EQ(static_cast<int64_t>(split.size()), chunks);
        EXPECT_EQ(std::accumulate(split.begin(), split.end(), int64_t{0}), layers);
        EXPECT_EQ(RankWithoutLayers(split, pp), -1);
        for (const int64_t count : split) {
          EXPECT_GE(count, layers / chunks);
          EXPECT_LE(count, (layers + chunks - 1) / chunks);
        }
      }
    }
  }
}

TEST(StageLayersTest, FindsARankWithoutLayers) {
  EXPECT_EQ(RankWithoutLayers({0, 1, 0, 1}, 2), 0);
  EXPECT_EQ(RankWithoutLayers({1, 0, 0, 1}, 2), -1);
  EXPECT_EQ(RankWithoutLayers({1, 1, 0}, 3), 2);
}

}  // namespace
}  // namespace planc
