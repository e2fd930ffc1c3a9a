#include "compiler/spec/suggest.h"

#include <string>

#include "gtest/gtest.h"

namespace planc {
namespace {

using Names = std::vector<std::string>;

TEST(SuggestTest, DistanceCountsEdits) {
  EXPECT_EQ(EditDistance("", ""), 0);
  EXPECT_EQ(EditDistance("abc", ""), 3);
  EXPECT_EQ(EditDistance("heads", "head"), 1);
  EXPECT_EQ(EditDistance("layesr", "layers"), 1);
  EXPECT_EQ(EditDistance("kitten", "sitting"), 3);
}

TEST(SuggestTest, NearestKeepsItsDistance) {
  const Names words = {"none", "selective", "full"};
  EXPECT_EQ(Nearest("selectve", words), "selective");
  EXPECT_EQ(Nearest("FULL", words), "full");
  EXPECT_EQ(Nearest("everything", words), "");
  EXPECT_EQ(Nearest(std::string(1000, 'a'), words), "");
}

TEST(SuggestTest, KeysOfTheSameSectionComeFirst) {
  EXPECT_EQ(SuggestKeys("mesh", "dpshard"), Names{"mesh.dp_shard"});
  EXPECT_EQ(SuggestKeys("mesh", "dp-shard"), Names{"mesh.dp_shard"});
  ASSERT_FALSE(SuggestKeys("batch", "sequnce").empty());
  EXPECT_EQ(SuggestKeys("batch", "sequnce").front(), "batch.sequence");
}

TEST(SuggestTest, KeysOfOtherSectionsAreFound) {
  EXPECT_EQ(SuggestKeys("", "zero"), Names{"parallelism.zero"});
  EXPECT_EQ(SuggestKeys("parallelism", "virtual_stages"),
            Names{"parallelism.pipeline.virtual_stages"});
  EXPECT_EQ(SuggestKeys("model", "qqqqq"), Names{});
}

}  // namespace
}  // namespace planc
