// A disk that takes long is not a rank that is lost.
#include <array>
#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/checkpoint/checkpoint_directory.h"
#include "runtime/checkpoint/checkpointer.h"
#include "runtime/checkpoint/control_agreement.h"
#include "runtime/checkpoint/test_plan.h"
#include "runtime/checkpoint/test_state.h"
#include "runtime/process_group/control.h"
#include "runtime/process_group/memory_store.h"
#include "runtime/process_group/storage_watch.h"

namespace planc {
namespace {

constexpr absl::Duration kAgreementTimeout = absl::Milliseconds(250);
constexpr absl::Duration kPatience = absl::Milliseconds(10);

// A disk whose fsync of the manifest does not return before it is let go.
class SlowDisk : public HostFileSystem {
 public:
  int Create(const std::string& path) const override {
    const int file = HostFileSystem::Create(path);
    const std::lock_guard<std::mutex> lock(mutex_);
    if (absl::EndsWith(path, "manifest.json")) slow_ = file;
    return file;
  }
  int Sync(int file) const override {
    std::unique_lock<std::mutex> lock(mutex_);
    if (file == slow_) changed_.wait(lock, [this] { return let_go_; });
    return HostFileSystem::Sync(file);
  }
  void LetGo() {
    const std::lock_guard<std::mutex> lock(mutex_);
    let_go_ = true;
    changed_.notify_all();
  }

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  mutable int slow_ = -1;
  bool let_go_ = false;
};

class SlowStorageTest : public ::testing::TestWithParam<bool> {
 protected:
  SlowStorageTest() : plan_(CheckpointTestPlan(1, 1, 2, 1)) {
    plan_.job.mutable_checkpoint()->set_async(GetParam());
    directory_ = ::testing::TempDir() + "slow_storage_" + (GetParam() ? "async" : "sync");
    std::filesystem::remove_all(directory_);
  }

  // One rank saves step 5; `watched`: it tells and hears what storage does.
  void SaveAs(int64_t rank, bool watched, absl::Status* result) {
    StorageWatch::Options options;
    options.connect = [this, rank]() -> absl::StatusOr<std::shared_ptr<KeyValueStore>> {
      if (rank == 1) asked_ = true;
      return store_;
    };
    options.prefix = "test";
    options.rank = rank;
    options.patience = {kPatience, kPatience};
    StorageWatch watch(std::move(options));
    Control control(store_, "test", rank, 2, kAgreementTimeout);
    SaveOptions save;
    save.files = &disk_;
    if (watched) {
      control.ExcuseBy(&watch, /*background=*/true);
      save.storage = &watch;
    }
    TestShards shards(plan_, rank);
    VisitState(plan_, TpOf(plan_, rank), shards.Views(), 1,
               [](float& value, float expected) { value = expected; });
    ControlAgreement agreement(&control);
    Checkpointer checkpointer(plan_, rank, 1, shards.Views(), directory_, agreement, save);
    const absl::Status begun = checkpointer.Save(5).status();
    *result = begun.ok() ? checkpointer.Finish() : begun;
    ++ended_;
  }

  Plan plan_;
  std::string directory_;
  SlowDisk disk_;
  std::shared_ptr<MemoryStore> store_ = std::make_shared<MemoryStore>();
  std::atomic<bool> asked_{false};  // rank 1 would have given up, and asks why rank 0 is late
  std::atomic<int> ended_{0};
};

TEST_P(SlowStorageTest, AnFsyncLongerThanTheTimeoutIsWaitedFor) {
  std::array<absl::Status, 2> results;
  std::thread first([&] { SaveAs(0, true, &results[0]); });
  std::thread second([&] { SaveAs(1, true, &results[1]); });
  while (!asked_ && ended_ == 0) absl::SleepFor(absl::Milliseconds(1));
  EXPECT_EQ(ended_, 0);
  disk_.LetGo();
  first.join();
  second.join();
  EXPECT_TRUE(results[0].ok()) << results[0];
  EXPECT_TRUE(results[1].ok()) << results[1];
  EXPECT_TRUE(LoadState(plan_, directory_ + "/" + CheckpointName(5), 1).ok());
}

// What happened before ranks told of their storage, and happens when one is silent.
TEST_P(SlowStorageTest, ARankThatTellsNothingIsGivenUp) {
  std::array<absl::Status, 2> results;
  std::thread first([&] { SaveAs(0, false, &results[0]); });
  std::thread second([&] { SaveAs(1, false, &results[1]); });
  while (ended_ == 0) absl::SleepFor(absl::Milliseconds(1));
  disk_.LetGo();
  first.join();
  second.join();
  EXPECT_EQ(results[1].code(), absl::StatusCode::kDeadlineExceeded) << results[1];
}

INSTANTIATE_TEST_SUITE_P(AsyncAndNot, SlowStorageTest, ::testing::Bool());

}  // namespace
}  // namespace planc
