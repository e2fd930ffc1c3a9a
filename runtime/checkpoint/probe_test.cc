#include "runtime/checkpoint/probe.h"

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/checkpoint/checkpoint_directory.h"
#include "runtime/checkpoint/checkpoint_size.h"
#include "runtime/checkpoint/test_plan.h"
#include "runtime/checkpoint/test_state.h"
#include "schemas/fault.h"

namespace planc {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

enum class CallKind { kCreate, kWrite, kSync, kOpenDirectory, kMakeDirectory, kRename, kRemove };
constexpr CallKind kCalls[] = {
    CallKind::kCreate,        CallKind::kWrite,  CallKind::kSync,  CallKind::kOpenDirectory,
    CallKind::kMakeDirectory, CallKind::kRename, CallKind::kRemove};

// The host's file system, which refuses one kind of call, writes something else, or has so much
// room.
class OddFileSystem : public HostFileSystem {
 public:
  std::optional<CallKind> refused;
  bool garbles = false;
  int64_t free = -ENOSYS;

  int Create(const std::string& path) const override {
    return Refuses(CallKind::kCreate) ? -EDQUOT : HostFileSystem::Create(path);
  }
  int OpenDirectory(const std::string& path) const override {
    return Refuses(CallKind::kOpenDirectory) ? -EACCES : HostFileSystem::OpenDirectory(path);
  }
  int64_t Write(int file, const void* data, int64_t bytes, int64_t offset) const override {
    if (Refuses(CallKind::kWrite)) return -EDQUOT;
    if (!garbles) return HostFileSystem::Write(file, data, bytes, offset);
    return HostFileSystem::Write(file, std::string(static_cast<size_t>(bytes), '\0').data(), bytes,
                                 offset);
  }
  int Sync(int file) const override {
    return Refuses(CallKind::kSync) ? -EIO : HostFileSystem::Sync(file);
  }
  int MakeDirectory(const std::string& path) const override {
    return Refuses(CallKind::kMakeDirectory) ? -EROFS : HostFileSystem::MakeDirectory(path);
  }
  int Rename(const std::string& from, const std::string& to) const override {
    return Refuses(CallKind::kRename) ? -EPERM : HostFileSystem::Rename(from, to);
  }
  int Remove(const std::string& path) const override {
    return Refuses(CallKind::kRemove) ? -EPERM : HostFileSystem::Remove(path);
  }
  int64_t FreeBytes(const std::string&) const override { return free; }

 private:
  bool Refuses(CallKind call) const { return refused == call; }
};

class ProbeTest : public testing::Test {
 protected:
  ProbeTest() {
    saves_.directory = testing::TempDir() + "probe_" +
                       testing::UnitTest::GetInstance()->current_test_info()->name();
    saves_.run_id = "0123456789abcdef";
    saves_.end_step = 100;
    fs::remove_all(saves_.directory);
    plan_.job.mutable_checkpoint()->set_keep(2);
    plan_.job.mutable_checkpoint()->set_every_steps(10);
  }

  absl::Status Probe(const FileSystem& files = HostFileSystem()) const {
    return OnAllRanks(plan_, [&](int64_t rank, Agreement& agreement) {
      return ProbeDirectory(plan_, rank, saves_, agreement, files);
    });
  }
  void Save(int64_t step, const std::string& run_id) {
    SaveOptions options;
    options.run_id = run_id;
    Plan plan = plan_;
    plan.job.mutable_checkpoint()->set_keep(100);
    ASSERT_TRUE(SaveState(plan, saves_.directory, step, 1, options).ok());
  }
  bool IsEmpty() const {
    std::error_code error;
    return !fs::exists(saves_.directory, error) || fs::is_empty(saves_.directory, error);
  }

  Plan plan_ = CheckpointTestPlan(1, 2, 2, 2);
  SavesToCome saves_;
};

TEST_F(ProbeTest, LeavesNothingBehind) {
  EXPECT_TRUE(Probe().ok()) << Probe();
  EXPECT_TRUE(IsEmpty());
  // What one that was killed left is no hindrance.
  fs::create_directories(saves_.directory + "/probe");
  std::ofstream(saves_.directory + "/probe/rank-0") << "old";
  EXPECT_TRUE(Probe().ok()) << Probe();
  EXPECT_TRUE(IsEmpty());
}

TEST_F(ProbeTest, EveryCallThatASaveMakesIsTriedOut) {
  for (const CallKind call : kCalls) {
    OddFileSystem files;
    files.refused = call;
    const absl::Status found = Probe(files);
    EXPECT_FALSE(found.ok()) << static_cast<int>(call);
    EXPECT_EQ(FaultOf(found), Fault::kEnvironment) << found;
    EXPECT_THAT(std::string(found.message()),
                AllOf(HasSubstr("checkpoint.directory: "), HasSubstr(saves_.directory)));
    if (call != CallKind::kRemove) {
      EXPECT_TRUE(IsEmpty()) << static_cast<int>(call);
    }
  }
  OddFileSystem files;
  files.garbles = true;
  EXPECT_THAT(std::string(Probe(files).message()), HasSubstr("does not read as it was written"));
}

TEST_F(ProbeTest, AllRanksMustSeeTheSameFolder) {
  const std::string other = saves_.directory + "_of_rank_3";
  fs::remove_all(other);
  fs::create_directories(other + "/probe");
  const absl::Status found = OnAllRanks(plan_, [&](int64_t rank, Agreement& agreement) {
    SavesToCome saves = saves_;
    if (rank == 3) saves.directory = other;
    return ProbeDirectory(plan_, rank, saves, agreement);
  });
  EXPECT_THAT(std::string(found.message()),
              HasSubstr("rank 0 does not see what rank 3 wrote: all ranks must share "
                        "checkpoint.directory"));
  EXPECT_EQ(FaultOf(found), Fault::kEnvironment);
}

TEST_F(ProbeTest, CountsTheCheckpointsToCome) {
  EXPECT_EQ(CountSaves(plan_, saves_), 10);
  saves_.first_step = 15;
  saves_.end_step = 31;
  EXPECT_EQ(CountSaves(plan_, saves_), 3);  // 20, 30, 31
  saves_.first_step = 31;
  EXPECT_EQ(CountSaves(plan_, saves_), 0);
  plan_.job.mutable_checkpoint()->set_every_steps(0);
  saves_.first_step = 30;
  EXPECT_EQ(CountSaves(plan_, saves_), 1);
}

TEST_F(ProbeTest, RoomForTheKeptOnesAndOneMoreIsNeededWhereTheyAreNotThereYet) {
  const int64_t one = CheckpointSizeOf(plan_).total_bytes;
  EXPECT_EQ(MissingCheckpointBytes(plan_, saves_), 3 * one);
  Save(10, saves_.run_id);
  Save(20, "another run");
  Save(30, saves_.run_id);
  saves_.first_step = 10;
  EXPECT_EQ(MissingCheckpointBytes(plan_, saves_), 2 * one) << "later ones were abandoned";
  saves_.first_step = 30;
  EXPECT_EQ(MissingCheckpointBytes(plan_, saves_), one);
  Save(25, saves_.run_id);
  EXPECT_EQ(MissingCheckpointBytes(plan_, saves_), one) << "more than are kept";
  saves_.first_step = 0;
  saves_.end_step = 20;
  EXPECT_EQ(MissingCheckpointBytes(plan_, saves_), 2 * one) << "no more than two are saved";
}

TEST_F(ProbeTest, TooLittleRoomIsSaidWithTheBytes) {
  OddFileSystem files;
  files.free = 3 * CheckpointSizeOf(plan_).total_bytes;
  EXPECT_TRUE(Probe(files).ok()) << Probe(files);
  --files.free;
  const absl::Status found = Probe(files);
  EXPECT_EQ(found.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(FaultOf(found), Fault::kEnvironment);
  EXPECT_THAT(std::string(found.message()),
              AllOf(HasSubstr(saves_.directory), HasSubstr("3 more checkpoints of 0.006454 MiB"),
                    HasSubstr("0.01936 MiB are free"), HasSubstr("checkpoint.keep (2;")));
  files.free = -ENOSYS;  // the file system does not say
  EXPECT_TRUE(Probe(files).ok());
}

TEST_F(ProbeTest, WithoutASaveToComeNothingIsTouched) {
  saves_.first_step = saves_.end_step;
  OddFileSystem files;
  files.refused = CallKind::kMakeDirectory;
  EXPECT_TRUE(Probe(files).ok());
}

TEST(FreeBytesTest, TheOperatingSystemSaysSo) {
  const HostFileSystem files;
  EXPECT_GT(files.FreeBytes("/"), 0);
  EXPECT_EQ(files.FreeBytes(testing::TempDir() + "none"), -ENOENT);
  EXPECT_EQ(files.FreeBytes("/proc"), -ENOSYS);
}

}  // namespace
}  // namespace planc
