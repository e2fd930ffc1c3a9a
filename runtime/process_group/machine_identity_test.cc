#include "runtime/process_group/machine_identity.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace planc {
namespace {

TEST(MachineIdentityTest, IsTheSameForOneNameOnOneMachine) {
  EXPECT_EQ(MachineIdentity("n1"), MachineIdentity("n1"));
  EXPECT_NE(MachineIdentity("n1"), MachineIdentity("n2"));
  // The kernel's boot, the processes' namespace and the network's.
  EXPECT_THAT(MachineIdentity("n1"), ::testing::MatchesRegex("n1 [-0-9a-f]+ pid:.[0-9]+. net:.*"));
}

TEST(MachineIdentityTest, RanksMeetByIdentityAndTheUnknownOnesNeverDo) {
  const std::string machines = MachinesText({"a", "b", "a", "", "", "b"});
  EXPECT_EQ(machines, "0 1 0 3 4 1");
  EXPECT_TRUE(OnOneMachine(machines, {0, 2}));
  EXPECT_TRUE(OnOneMachine(machines, {1, 5}));
  EXPECT_FALSE(OnOneMachine(machines, {0, 1}));
  EXPECT_FALSE(OnOneMachine(machines, {3, 4}));
  EXPECT_FALSE(OnOneMachine(machines, {0, 6})) << "no such rank";
}

}  // namespace
}  // namespace planc
