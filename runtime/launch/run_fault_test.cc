#include "runtime/launch/run_fault.h"

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "schemas/exit_code.h"

namespace planc {
namespace {

using ::testing::HasSubstr;

RunFault Fault(int64_t step, int64_t code, int64_t signal) {
  RunFault fault;
  fault.step = step;
  fault.code = code;
  fault.signal = signal;
  return fault;
}

// The same fault as often as `times`, one start after the other.
RunFault Repeated(const RunFault& fault, int times) {
  std::optional<RunFault> last;
  for (int i = 0; i < times; ++i) last = CountedFault(fault, last);
  return *last;
}

TEST(RunFaultTest, CountsTheSameFaultInARow) {
  const RunFault killed = Fault(6, 7, SIGKILL);
  EXPECT_EQ(Repeated(killed, 3).times, 3);
  for (const RunFault& other : {Fault(7, 7, SIGKILL), Fault(6, 7, 0), Fault(6, 6, 0)}) {
    EXPECT_EQ(CountedFault(other, Repeated(killed, 3)).times, 1);
  }
  RunFault later = killed;
  later.checkpoint_step = 4;
  EXPECT_EQ(CountedFault(later, killed).times, 1);
}

TEST(RunFaultTest, ARepeatedSignalIsNotTriedAgain) {
  const RunFault killed = Fault(6, kExitPeerLost, SIGSEGV);
  EXPECT_EQ(CodeOfFault(Repeated(killed, 2)), kExitPeerLost);
  EXPECT_EQ(RepetitionText(Repeated(killed, 2)), "");
  EXPECT_EQ(CodeOfFault(Repeated(killed, 3)), 128 + SIGSEGV);
  EXPECT_THAT(RepetitionText(Repeated(killed, 3)),
              HasSubstr("3 times in a row signal 11 (Segmentation fault) ended a rank in step 6"));
}

TEST(RunFaultTest, ARankThatIsAlwaysLostInOneStepIsNotTriedAgain) {
  const RunFault lost = Fault(6, kExitPeerLost, 0);
  EXPECT_EQ(CodeOfFault(Repeated(lost, 2)), kExitPeerLost);
  EXPECT_EQ(CodeOfFault(Repeated(lost, 3)), kExitInternal);
}

TEST(RunFaultTest, RepeatedWantOfMemoryIsCodeThree) {
  RunFault killed = Fault(6, kExitPeerLost, SIGKILL);
  killed.out_of_memory = true;
  EXPECT_EQ(CodeOfFault(Repeated(killed, 1)), kExitPeerLost);
  EXPECT_EQ(CodeOfFault(Repeated(killed, 2)), kExitDoesNotFit);
}

TEST(RunFaultTest, OtherCodesStay) {
  EXPECT_EQ(CodeOfFault(Repeated(Fault(6, kExitTrainingFault, 0), 9)), kExitTrainingFault);
}

TEST(RunFaultTest, TellsWhoSentSigkill) {
  EXPECT_TRUE(IsOutOfMemoryKill(SIGKILL, {1, 5}, {2, 6}));
  EXPECT_FALSE(IsOutOfMemoryKill(SIGKILL, {1, 5}, {1, 6}));
  EXPECT_FALSE(IsOutOfMemoryKill(SIGSEGV, {1, 5}, {2, 6}));
  EXPECT_THAT(SignalReason(SIGKILL, {1, 5}, {2, 6}), HasSubstr("of its control group"));
  EXPECT_THAT(SignalReason(SIGKILL, {1, 5}, {1, 6}), HasSubstr("/proc/vmstat"));
  EXPECT_THAT(SignalReason(SIGKILL, {1, 5}, {1, 5}), HasSubstr("another process"));
  EXPECT_EQ(SignalReason(SIGUSR1, {1, 5}, {1, 5}), "");
}

// A machine made of files.
class CgroupMemoryTest : public ::testing::Test {
 protected:
  CgroupMemoryTest() {
    const auto* const test = ::testing::UnitTest::GetInstance()->current_test_info();
    root_ = ::testing::TempDir() + "/" + test->name();
    std::filesystem::remove_all(root_);
  }

  void Put(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }

  std::string root_;
};

TEST_F(CgroupMemoryTest, SecondVersionWithAncestors) {
  Put("/proc/self/cgroup", "0::/slurm/job_7\n");
  Put("/proc/self/mountinfo", "30 23 0:28 / " + root_ + "/cg rw - cgroup2 cgroup2 rw\n");
  Put("/proc/vmstat", "nr_free 1\noom_kill 9\n");
  Put("/cg/slurm/memory.max", "max\n");
  Put("/cg/slurm/memory.current", "77\n");
  Put("/cg/slurm/job_7/memory.max", "1000\n");
  Put("/cg/slurm/job_7/memory.current", "700\n");
  Put("/cg/slurm/job_7/memory.stat", "anon 100\ninactive_file 300\nactive_file 200\n");
  Put("/cg/slurm/job_7/memory.swap.max", "50\n");
  Put("/cg/slurm/job_7/memory.swap.current", "20\n");
  Put("/cg/slurm/job_7/memory.events", "oom 3\noom_kill 2\n");
  const std::vector<MemoryCgroup> groups = MemoryCgroups(root_ + "/proc");
  ASSERT_EQ(groups.size(), 3u);
  EXPECT_EQ(groups[0].directory, root_ + "/cg/slurm/job_7");
  EXPECT_EQ(groups[2].directory, root_ + "/cg");
  const std::optional<CgroupRoom> room = RoomOf(groups[0]);
  ASSERT_TRUE(room.has_value());
  EXPECT_EQ(room->free_bytes, 800);  // 1000 - (700 - 500 of page cache)
  EXPECT_EQ(room->swap_bytes, 30);
  EXPECT_FALSE(RoomOf(groups[1]).has_value());
  EXPECT_FALSE(RoomOf(groups[2]).has_value());
  const OutOfMemoryKills kills = CountOutOfMemoryKills(root_ + "/proc");
  EXPECT_EQ(kills.own_group, 2);
  EXPECT_EQ(kills.machine, 9);
}

TEST_F(CgroupMemoryTest, FirstVersionSeenFromAContainer) {
  Put("/proc/self/cgroup", "4:memory:/docker/abc\n0::/\n");
  Put("/proc/self/mountinfo",
      "35 31 0:32 /docker/abc " + root_ + "/cg rw shared:1 - cgroup cgroup rw,memory\n");
  Put("/cg/memory.limit_in_bytes", "1000\n");
  Put("/cg/memory.usage_in_bytes", "400\n");
  Put("/cg/memory.stat", "inactive_file 5\ntotal_inactive_file 100\ntotal_active_file 0\n");
  Put("/cg/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 4\n");
  const std::vector<MemoryCgroup> groups = MemoryCgroups(root_ + "/proc");
  ASSERT_EQ(groups.size(), 1u);
  EXPECT_EQ(groups[0].directory, root_ + "/cg");
  const std::optional<CgroupRoom> room = RoomOf(groups[0]);
  ASSERT_TRUE(room.has_value());
  EXPECT_EQ(room->free_bytes, 700);
  EXPECT_EQ(CountOutOfMemoryKills(root_ + "/proc").own_group, 4);
  Put("/cg/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_FALSE(RoomOf(groups[0]).has_value());
}

TEST_F(CgroupMemoryTest, WithoutControlGroupsNothingIsBounded) {
  EXPECT_TRUE(MemoryCgroups(root_ + "/proc").empty());
  EXPECT_EQ(CountOutOfMemoryKills(root_ + "/proc").machine, 0);
}

}  // namespace
}  // namespace planc
