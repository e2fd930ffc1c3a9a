#include "schemas/mesh.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace planc {
namespace {

using testing::ElementsAre;

using Groups = std::vector<std::vector<int64_t>>;

constexpr AxisSet kPp = AxisBit(Axis::kPp);
constexpr AxisSet kShard = AxisBit(Axis::kDpShard);
constexpr AxisSet kCp = AxisBit(Axis::kCp);
constexpr AxisSet kTp = AxisBit(Axis::kTp);

TEST(Mesh, RanksRunTpFastestAndPpSlowest) {
  const Mesh mesh{{2, 3, 2, 1, 4}};
  EXPECT_EQ(mesh.WorldSize(), 48);
  EXPECT_EQ(mesh.RankOf({1, 2, 0, 0, 3}), ((1 * 3 + 2) * 2 + 0) * 4 + 3);
  for (int64_t rank = 0; rank < mesh.WorldSize(); ++rank) {
    EXPECT_EQ(mesh.RankOf(mesh.CoordinatesOf(rank)), rank);
  }
}

// Group lists that Megatron-LM's rank generator produces for 16 ranks.
TEST(Mesh, GroupsOfTp2Pp4Dp2) {
  const Mesh mesh{{4, 1, 2, 1, 2}};
  EXPECT_EQ(AllGroups(mesh, {"tp", kTp}),
            (Groups{{0, 1}, {2, 3}, {4, 5}, {6, 7}, {8, 9}, {10, 11}, {12, 13}, {14, 15}}));
  EXPECT_EQ(AllGroups(mesh, {"dp", kShard}),
            (Groups{{0, 2}, {1, 3}, {4, 6}, {5, 7}, {8, 10}, {9, 11}, {12, 14}, {13, 15}}));
  EXPECT_EQ(AllGroups(mesh, {"pp", kPp}),
            (Groups{{0, 4, 8, 12}, {1, 5, 9, 13}, {2, 6, 10, 14}, {3, 7, 11, 15}}));
  EXPECT_EQ(AllGroups(mesh, {"tp-pp", kTp | kPp}),
            (Groups{{0, 1, 4, 5, 8, 9, 12, 13}, {2, 3, 6, 7, 10, 11, 14, 15}}));
  EXPECT_EQ(AllGroups(mesh, {"tp-dp", kTp | kShard}),
            (Groups{{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9, 10, 11}, {12, 13, 14, 15}}));
  EXPECT_EQ(AllGroups(mesh, {"embedding", kPp, true}),
            (Groups{{0, 12}, {1, 13}, {2, 14}, {3, 15}}));
}

TEST(Mesh, GroupsOfTp2Cp2Pp2Dp2) {
  const Mesh mesh{{2, 1, 2, 2, 2}};
  EXPECT_EQ(AllGroups(mesh, {"cp", kCp}),
            (Groups{{0, 2}, {1, 3}, {4, 6}, {5, 7}, {8, 10}, {9, 11}, {12, 14}, {13, 15}}));
  EXPECT_EQ(AllGroups(mesh, {"dp-cp", kShard | kCp}),
            (Groups{{0, 2, 4, 6}, {1, 3, 5, 7}, {8, 10, 12, 14}, {9, 11, 13, 15}}));
  EXPECT_EQ(AllGroups(mesh, {"tp-pp", kTp | kPp}),
            (Groups{{0, 1, 8, 9}, {2, 3, 10, 11}, {4, 5, 12, 13}, {6, 7, 14, 15}}));
}

TEST(Mesh, EveryRankIsInExactlyOneGroupOfAKind) {
  const Mesh mesh{{3, 2, 2, 1, 2}};
  for (const AxisSet axes : {kPp, kShard, kTp, static_cast<AxisSet>(kPp | kTp)}) {
    const GroupKind kind{"g", axes};
    std::vector<int> seen(mesh.WorldSize(), 0);
    for (const auto& group : AllGroups(mesh, kind)) {
      EXPECT_EQ(static_cast<int64_t>(group.size()), GroupSize(mesh, kind));
      for (int64_t rank : group) {
        ++seen[rank];
        EXPECT_EQ(GroupMembers(mesh, kind, rank), group);
      }
    }
    EXPECT_THAT(seen, testing::Each(1));
  }
}

TEST(Mesh, MiddleStagesAreInNoEmbeddingGroup) {
  const Mesh mesh{{4, 1, 1, 1, 1}};
  const GroupKind embedding{"embedding", kPp, true};
  EXPECT_EQ(GroupSize(mesh, embedding), 2);
  EXPECT_THAT(GroupMembers(mesh, embedding, 0), ElementsAre(0, 3));
  EXPECT_TRUE(GroupMembers(mesh, embedding, 1).empty());
}

}  // namespace
}  // namespace planc
