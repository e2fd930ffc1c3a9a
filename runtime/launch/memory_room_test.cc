#include "runtime/launch/memory_room.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace planc {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

class MemoryRoomTest : public ::testing::Test {
 protected:
  MemoryRoomTest() {
    const auto* const test = ::testing::UnitTest::GetInstance()->current_test_info();
    root_ = ::testing::TempDir() + "/room-" + test->name();
    std::filesystem::remove_all(root_);
    proc_ = root_ + "/proc";
  }

  void Put(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }

  std::string root_;
  std::string proc_;
};

TEST_F(MemoryRoomTest, PageCacheAndSwapAreFree) {
  Put("/proc/meminfo",
      "MemTotal:  1000 kB\nMemFree: 1 kB\nMemAvailable:   600 kB\n"
      "SwapTotal: 90 kB\nSwapFree:   40 kB\n");
  const std::vector<MemoryRoom> rooms = NodeMemoryRooms(proc_);
  ASSERT_EQ(rooms.size(), 1u);
  EXPECT_EQ(rooms[0].bytes, 640 * 1024);
  EXPECT_THAT(rooms[0].by, HasSubstr("MemAvailable with free swap"));
}

TEST_F(MemoryRoomTest, ControlGroupsAndThoseTheyLieIn) {
  Put("/proc/meminfo", "MemAvailable:   600 kB\nSwapFree:   40 kB\n");
  Put("/proc/self/cgroup", "0::/slurm/step\n");
  Put("/proc/self/mountinfo", "30 23 0:28 / " + root_ + "/cg rw - cgroup2 cgroup2 rw\n");
  Put("/cg/slurm/memory.max", "5000\n");
  Put("/cg/slurm/memory.current", "2000\n");
  Put("/cg/slurm/memory.swap.max", "0\n");
  Put("/cg/slurm/step/memory.max", "max\n");
  Put("/cg/slurm/step/memory.current", "2000\n");
  const std::vector<MemoryRoom> rooms = NodeMemoryRooms(proc_);
  ASSERT_EQ(rooms.size(), 2u);
  EXPECT_EQ(rooms[1].bytes, 3000);
  EXPECT_THAT(rooms[1].by, HasSubstr("memory.max of " + root_ + "/cg/slurm"));
}

TEST_F(MemoryRoomTest, ASystemThatSaysNothingBoundsNothing) {
  EXPECT_THAT(NodeMemoryRooms(proc_), IsEmpty());
}

TEST_F(MemoryRoomTest, RealLimits) {
  EXPECT_GT(MappedProgramBytes(), 0);
  EXPECT_GT(ThreadStackBytes(), 0);
  const pid_t child = fork();
  if (child == 0) {
    const rlimit limit = {rlim_t{1} << 40, rlim_t{1} << 40};
    setrlimit(RLIMIT_AS, &limit);
    setrlimit(RLIMIT_DATA, &limit);
    const std::vector<MemoryRoom> mapped = MappedMemoryLimits();
    const std::vector<MemoryRoom> held = PrivateMemoryLimits();
    const bool right = mapped.size() == 1 && mapped[0].bytes == int64_t{1} << 40 &&
                       held.size() == 1 && held[0].bytes == int64_t{1} << 40;
    _exit(right ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

}  // namespace
}  // namespace planc
