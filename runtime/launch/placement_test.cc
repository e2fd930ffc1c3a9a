#include "runtime/launch/placement.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace planc {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string Refusal(const std::vector<RankPlace>& places, int64_t ranks_per_node,
                    LaunchSource source = LaunchSource::kSlurm) {
  const absl::Status status = CheckPlacement(places, ranks_per_node, source);
  if (status.ok()) return "";
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  return std::string(status.message());
}

TEST(CheckPlacementTest, BlocksOfRanksAreAccepted) {
  EXPECT_EQ(Refusal({{"n1", 0}, {"n1", 1}, {"n2", 0}, {"n2", 1}}, 2), "");
  EXPECT_EQ(Refusal({{"n2", 0}, {"n1", 0}}, 1), "");
  EXPECT_EQ(Refusal({{"n1", 0}, {"n1", 1}, {"n1", 2}}, 3), "");
}

TEST(CheckPlacementTest, CyclicDistributionIsRefusedWithTheCommand) {
  EXPECT_THAT(
      Refusal({{"n1", 0}, {"n2", 0}, {"n1", 1}, {"n2", 1}}, 2),
      AllOf(HasSubstr("rank 1 runs on n2, not on n1 with rank 0"),
            HasSubstr("n1 has ranks 0, 2; n2 has ranks 1, 3"),
            HasSubstr("\n  srun -K1 --nodes=2 --ntasks-per-node=2 --distribution=block:block")));
}

TEST(CheckPlacementTest, UnevenFillIsRefused) {
  EXPECT_THAT(Refusal({{"n1", 0}, {"n1", 1}, {"n1", 2}, {"n2", 0}}, 2),
              AllOf(HasSubstr("rank 2 runs on n1 with rank 0"),
                    HasSubstr("n1 has ranks 0, 1, 2; n2 has rank 3")));
}

TEST(CheckPlacementTest, PlaneDistributionIsRefused) {
  EXPECT_THAT(
      Refusal({{"a", 0}, {"a", 1}, {"b", 0}, {"b", 1}, {"a", 2}, {"a", 3}, {"b", 2}, {"b", 3}}, 4),
      HasSubstr("rank 2 runs on b, not on a with rank 0"));
}

TEST(CheckPlacementTest, MachinesMustDiffer) {
  EXPECT_THAT(Refusal({{"n1", 0}, {"n1", 0}}, 1, LaunchSource::kTorchrun),
              AllOf(HasSubstr("rank 1 runs on n1 with rank 0"),
                    HasSubstr("torchrun --nnodes=2 --nproc-per-node=1 --no-python")));
}

TEST(CheckPlacementTest, MachinesOfOneNameAreToldApart) {
  const RankPlace first{"node", 0, "10.0.0.1", "boot1 net"};
  const RankPlace second{"node", 0, "10.0.0.2", "boot2 net"};
  EXPECT_EQ(Refusal({first, second}, 1, LaunchSource::kTorchrun), "");
  RankPlace neighbour = first;
  neighbour.local_rank = 1;
  EXPECT_THAT(Refusal({first, second, neighbour}, 3, LaunchSource::kTorchrun),
              AllOf(HasSubstr("rank 1 runs on node (10.0.0.2), not on node (10.0.0.1) with rank 0"),
                    HasSubstr("node (10.0.0.1) has ranks 0, 2; node (10.0.0.2) has rank 1")));
  EXPECT_THAT(Refusal({first, first}, 1, LaunchSource::kOpenMpi),
              AllOf(HasSubstr("rank 1 runs on node with rank 0"),
                    HasSubstr("\n  mpirun -n 2 --map-by ppr:1:node -x MASTER_ADDR=HOST")));
}

TEST(CheckPlacementTest, MoreMachinesThanTheMeshHasAreRefused) {
  EXPECT_THAT(Refusal({{"n1", 0}, {"n1", 1}, {"n2", 0}, {"n2", 1}}, 4),
              AllOf(HasSubstr("4 neighbouring ranks on each of 1 machine,"),
                    HasSubstr("rank 2 runs on n2, not on n1 with rank 0")));
}

TEST(CheckPlacementTest, PermutedLocalRanksAreRefused) {
  EXPECT_THAT(Refusal({{"n1", 1}, {"n1", 0}}, 2), HasSubstr("rank 0 is local rank 1 of n1, not 0"));
}

TEST(PlaceTextTest, RoundTrip) {
  const absl::StatusOr<RankPlace> place = ParsePlace(PlaceText({"host name", 7, "10.0.0.1"}));
  ASSERT_TRUE(place.ok()) << place.status();
  EXPECT_EQ(place->host, "host name");
  EXPECT_EQ(place->local_rank, 7);
  EXPECT_EQ(place->address, "10.0.0.1");
  EXPECT_EQ(place->machine, "");
  EXPECT_EQ(ParsePlace(PlaceText({"h", 7, "::1", "boot net"}))->machine, "boot net");
  EXPECT_FALSE(ParsePlace("x y z").ok());
  EXPECT_FALSE(ParsePlace("1 2").ok());
}

TEST(NetworkAddressTest, TheFirstThatOthersCanReach) {
  EXPECT_EQ(NetworkAddress({{"n1", 0, "127.0.1.1"}, {"n2", 0, "10.0.0.2"}}), "10.0.0.2");
  EXPECT_EQ(NetworkAddress({{"n1", 0, "127.0.0.1"}, {"n1", 1, "::1"}}), "");
}

}  // namespace
}  // namespace planc
