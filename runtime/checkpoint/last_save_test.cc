#include "runtime/checkpoint/last_save.h"

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/checkpoint/checkpoint_directory.h"
#include "runtime/checkpoint/test_plan.h"
#include "runtime/checkpoint/test_state.h"

namespace planc {
namespace {

namespace fs = std::filesystem;

// A disk without room for so many saves.
class FullDisk : public HostFileSystem {
 public:
  int Create(const std::string& path) const override {
    if (path.find(".safetensors") == std::string::npos) return HostFileSystem::Create(path);
    if (refusals-- > 0) return -ENOSPC;
    return HostFileSystem::Create(path);
  }
  mutable std::atomic<int> refusals{0};
};

class LastSaveTest : public testing::TestWithParam<bool> {
 protected:
  LastSaveTest() : plan_(PlanOf(GetParam())), shards_(plan_, 0) {
    directory_ = testing::TempDir() + "last_save_test";
    fs::remove_all(directory_);
    SaveOptions options;
    options.files = &disk_;
    checkpointer_ = std::make_unique<Checkpointer>(plan_, 0, 1, shards_.Views(), directory_,
                                                   agreement_, options);
    VisitState(plan_, 0, shards_.Views(), 1,
               [](float& value, float expected) { value = expected; });
    rule_.first_pause = absl::Microseconds(1);
  }

  static Plan PlanOf(bool async) {
    Plan plan = CheckpointTestPlan(1, 1, 1, 1);
    plan.job.mutable_checkpoint()->set_async(async);
    return plan;
  }

  absl::Status Finish() {
    EXPECT_TRUE(checkpointer_->Save(7).ok());
    return FinishSaves(
        7, directory_, agreement_, rule_, [this] { return stop_after_ <= told_; },
        [this](const std::string&) { ++told_; }, checkpointer_.get());
  }

  Plan plan_;
  TestShards shards_;
  FullDisk disk_;
  SoleAgreement agreement_;
  std::string directory_;
  LastSaveRule rule_;
  int told_ = 0;
  int stop_after_ = 1000;  // pauses
  std::unique_ptr<Checkpointer> checkpointer_;
};

TEST_P(LastSaveTest, ARefusedSaveIsRepeatedFromMemory) {
  disk_.refusals = 4;
  EXPECT_TRUE(Finish().ok());
  EXPECT_EQ(told_, 4);
  const absl::Status loaded = LoadState(plan_, directory_ + "/" + CheckpointName(7), 1);
  EXPECT_TRUE(loaded.ok()) << loaded;
  EXPECT_EQ(checkpointer_->TakeEnded().size(), 5u);
}

TEST_P(LastSaveTest, ItEndsWithTheTimeGivenOrAStop) {
  disk_.refusals = 1000000;
  stop_after_ = 3;
  EXPECT_TRUE(absl::IsInternal(Finish()));
  EXPECT_EQ(told_, 3);
  stop_after_ = 1000;
  rule_.give_up_after = absl::ZeroDuration();
  EXPECT_TRUE(absl::IsInternal(Finish()));
  EXPECT_EQ(told_, 3) << "no time is given";
}

TEST_P(LastSaveTest, WhatCannotPassIsNotRepeated) {
  std::ofstream(directory_) << "a file";
  EXPECT_TRUE(absl::IsInternal(Finish()));
  EXPECT_EQ(told_, 0);
  EXPECT_TRUE(ListCheckpoints(directory_).empty());
}

INSTANTIATE_TEST_SUITE_P(Async, LastSaveTest, testing::Bool());

}  // namespace
}  // namespace planc
