#include "planc/node_memory.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "planc/example_plan.h"

namespace planc {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kMiB = int64_t{1} << 20;

int64_t TotalOf(const NodeMemory& memory, const std::string& name) {
  for (const NodeMemoryItem& item : memory.items) {
    if (item.name == name) return item.total_bytes;
  }
  ADD_FAILURE() << name;
  return -1;
}

// Two stages of four ranks, each on a machine of its own, with known arenas.
class NodeMemoryTest : public ::testing::Test {
 protected:
  NodeMemoryTest() : plan_(ExamplePlan()) {
    for (size_t stage = 0; stage < plan_.classes.size(); ++stage) {
      plan_.classes[stage].arena_bytes.fill(0);
      plan_.classes[stage].arena_bytes[static_cast<int>(MemoryKind::kWeights)] =
          static_cast<int64_t>(stage + 1) * 100 * kMiB;
      plan_.classes[stage].arena_bytes[static_cast<int>(MemoryKind::kHostPinned)] = 10 * kMiB;
    }
    launch_.world_size = 8;
    launch_.local_world_size = 4;
    launch_.host = "node-b";
  }

  absl::Status Check(const MemoryBounds& bounds) const {
    return CheckNodeMemory(plan_, launch_, /*running=*/true, bounds);
  }

  Plan plan_;
  LaunchConfig launch_;
};

TEST_F(NodeMemoryTest, CountsTheRanksOfOneMachine) {
  const NodeMemory first = NodeMemoryOf(plan_, 0, 4);
  EXPECT_EQ(TotalOf(first, "arenas"), 400 * kMiB);
  EXPECT_EQ(TotalOf(first, "snapshots for checkpoints"), 40 * kMiB);
  EXPECT_EQ(TotalOf(first, "processes, with stacks"), 4 * kProcessBytes);
  EXPECT_GT(TotalOf(first, "shared memory of groups"), 0);
  EXPECT_EQ(first.most_private_bytes, 110 * kMiB + kProcessBytes);
  EXPECT_EQ(TotalOf(NodeMemoryOf(plan_, 4, 4), "arenas"), 800 * kMiB);
  EXPECT_EQ(FullestNodeMemory(plan_).ranks, 4);
  EXPECT_EQ(FullestNodeMemory(plan_).total_bytes, NodeMemoryOf(plan_, 4, 4).total_bytes);
  // Groups over two machines talk over the network: all on one machine share more memory.
  const int64_t apart = TotalOf(first, "shared memory of groups") +
                        TotalOf(NodeMemoryOf(plan_, 4, 4), "shared memory of groups");
  EXPECT_GT(TotalOf(NodeMemoryOf(plan_, 0, 8), "shared memory of groups"), apart);
}

TEST_F(NodeMemoryTest, FitsExactly) {
  const NodeMemory need = NodeMemoryOf(plan_, 0, 4);
  const int64_t further = need.total_bytes - 4 * kProcessBytes;  // the processes are there
  MemoryBounds bounds;
  bounds.node = {{further, "the machine"}};
  EXPECT_TRUE(Check(bounds).ok()) << Check(bounds);
  bounds.node[0].bytes = further - 1;
  EXPECT_EQ(Check(bounds).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(Check({}).ok());  // a system that says nothing
}

TEST_F(NodeMemoryTest, ChecksTheMachineThatTheRankIsOn) {
  MemoryBounds bounds;
  bounds.node = {{600 * kMiB, "the machine"}};
  EXPECT_TRUE(Check(bounds).ok()) << Check(bounds);
  launch_.rank = 4;  // of the second stage
  EXPECT_FALSE(Check(bounds).ok());
}

TEST_F(NodeMemoryTest, ChecksAllRanksThatThisProcessStarts) {
  MemoryBounds bounds;
  bounds.node = {{600 * kMiB, "the machine"}};
  launch_ = LaunchConfig();
  const absl::Status status = CheckNodeMemory(plan_, launch_, /*running=*/false, bounds);
  EXPECT_THAT(std::string(status.message()), HasSubstr("the 8 ranks of this machine would not"));
}

TEST_F(NodeMemoryTest, TheTableSaysWhatNeedsWhatAndWhatBounds) {
  MemoryBounds bounds;
  bounds.node = {{int64_t{1} << 40, "the machine"}, {100 * kMiB, "memory.max of /cg/job"}};
  const std::string text(Check(bounds).message());
  EXPECT_THAT(text, HasSubstr("the 4 ranks of this machine (node-b)"));
  EXPECT_THAT(text, HasSubstr("arenas"));
  EXPECT_THAT(text, HasSubstr("400 MiB"));
  EXPECT_THAT(text, HasSubstr("free are 100 MiB, by memory.max of /cg/job"));
  EXPECT_THAT(text, Not(HasSubstr("by the machine")));
  EXPECT_THAT(text, HasSubstr("checkpoint.async=false saves 10.0 MiB a rank"));
}

TEST_F(NodeMemoryTest, LimitsOfEachProcess) {
  MemoryBounds bounds;
  bounds.private_memory = {{110 * kMiB + kProcessBytes, "RLIMIT_DATA"}};
  EXPECT_TRUE(Check(bounds).ok()) << Check(bounds);
  bounds.private_memory[0].bytes -= 1;
  EXPECT_THAT(std::string(Check(bounds).message()), HasSubstr("by RLIMIT_DATA"));
  const NodeMemory need = NodeMemoryOf(plan_, 0, 4);
  bounds.private_memory.clear();
  bounds.program_bytes = 30 * kMiB;
  bounds.stack_bytes = 8 * kMiB;
  launch_.threads = 3;
  const int64_t mapped = need.most_private_bytes + need.most_shared_bytes + 46 * kMiB;
  bounds.mapped_memory = {{mapped, "RLIMIT_AS"}};
  EXPECT_TRUE(Check(bounds).ok()) << Check(bounds);
  bounds.mapped_memory[0].bytes = mapped - 1;
  EXPECT_THAT(std::string(Check(bounds).message()), HasSubstr("each rank needs"));
}

}  // namespace
}  // namespace planc
