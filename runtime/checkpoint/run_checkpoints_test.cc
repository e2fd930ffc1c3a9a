#include "runtime/checkpoint/run_checkpoints.h"

#include <filesystem>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/checkpoint/manifest.h"
#include "runtime/checkpoint/test_plan.h"
#include "runtime/checkpoint/test_state.h"

namespace planc {
namespace {

namespace fs = std::filesystem;

constexpr char kOwn[] = "00000000000000aa";
constexpr char kOther[] = "00000000000000bb";

class RunCheckpointsTest : public testing::Test {
 protected:
  RunCheckpointsTest() : plan_(CheckpointTestPlan(1, 1, 1, 1)) {
    plan_.job.mutable_checkpoint()->set_keep(1);
    directory_ = testing::TempDir() + "run_checkpoints_" +
                 testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::remove_all(directory_);
  }

  // Saves a checkpoint as the run `id` does, or as a planc without ids.
  void Save(int64_t step, const std::string& id) {
    SaveOptions options;
    options.run_id = id;
    if (id.empty()) {  // which keeps all, here
      plan_.job.mutable_checkpoint()->set_keep(100);
    }
    const absl::Status saved = SaveState(plan_, directory_, step, 1, options);
    EXPECT_TRUE(saved.ok()) << saved;
    plan_.job.mutable_checkpoint()->set_keep(1);
  }
  static std::vector<int64_t> StepsOf(const std::vector<CheckpointEntry>& entries) {
    std::vector<int64_t> steps;
    for (const CheckpointEntry& entry : entries) steps.push_back(entry.step);
    return steps;
  }
  std::vector<int64_t> Steps() const { return StepsOf(ListCheckpoints(directory_)); }
  std::string IdOf(const std::string& name) const {
    const auto identity = ReadCheckpointIdentity(directory_ + "/" + name);
    EXPECT_TRUE(identity.ok()) << identity.status();
    return identity.ok() ? identity->run.id : "?";
  }

  Plan plan_;
  std::string directory_;
};

TEST_F(RunCheckpointsTest, TheIdentityIsThatOfTheManifest) {
  Save(3, kOwn);
  const auto manifest = ReadManifest(directory_ + "/step-00000003");
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  EXPECT_EQ(manifest->run.id, kOwn);
  const auto identity = ReadCheckpointIdentity(directory_ + "/step-00000003");
  ASSERT_TRUE(identity.ok()) << identity.status();
  EXPECT_EQ(identity->run.id, kOwn);
  EXPECT_EQ(identity->step, 3);
  fs::resize_file(directory_ + "/step-00000003/manifest.json", 20);
  EXPECT_TRUE(absl::IsDataLoss(ReadCheckpointIdentity(directory_ + "/step-00000003").status()));
}

TEST_F(RunCheckpointsTest, PruningRemovesOnlyTheOwnRuns) {
  Save(1, "");
  Save(2, kOther);
  Save(3, kOwn);
  fs::copy(directory_ + "/step-00000003", directory_ + "/step-00000004",
           fs::copy_options::recursive);
  Save(5, kOwn);
  Save(6, kOwn);
  EXPECT_EQ(Steps(), (std::vector<int64_t>{1, 2, 4, 6})) << "4 is a copy whose name is wrong";
}

TEST_F(RunCheckpointsTest, AnothersNameIsTakenWithoutLoss) {
  Save(5, kOther);
  Save(6, "");
  Save(5, kOwn);
  Save(6, kOwn);
  EXPECT_EQ(IdOf("step-00000006"), kOwn);
  EXPECT_EQ(IdOf(std::string("run-") + kOther + "/step-00000005"), kOther);
  EXPECT_EQ(IdOf("run-unknown/step-00000006"), "");
  // Once more: nothing that was set aside is replaced.
  Save(7, kOther);
  fs::rename(directory_ + "/step-00000007", directory_ + "/step-00000005");
  Save(5, kOwn);
  EXPECT_EQ(IdOf(std::string("run-") + kOther + "/step-00000005.1"), kOther);
}

TEST_F(RunCheckpointsTest, AnotherRunsReplacedCheckpointIsSetAside) {
  Save(5, kOther);
  fs::rename(directory_ + "/step-00000005", directory_ + "/step-00000005.old");
  Save(5, kOwn);
  EXPECT_EQ(IdOf("step-00000005"), kOwn);
  EXPECT_FALSE(fs::exists(directory_ + "/step-00000005.old"));
  EXPECT_EQ(IdOf(std::string("run-") + kOther + "/step-00000005"), kOther);
}

TEST_F(RunCheckpointsTest, WhatAutoTakes) {
  Save(1, "");
  Save(2, kOther);
  Save(3, kOwn);
  EXPECT_EQ(StepsOf(*SelectCheckpoints(directory_, {})), (std::vector<int64_t>{1, 2, 3}));
  EXPECT_EQ(StepsOf(*SelectCheckpoints(directory_, {kOwn, false, {}})), (std::vector<int64_t>{3}));
  EXPECT_EQ(StepsOf(*SelectCheckpoints(directory_, {kOwn, true, {}})),
            (std::vector<int64_t>{1, 3}));

  const AutoChoice own = *ChooseForAuto(directory_, {kOwn, false, {}});
  EXPECT_EQ(StepsOf(own.candidates), (std::vector<int64_t>{3}));
  EXPECT_EQ(own.others, (std::vector<std::string>{"without an id", kOther}));
  const AutoChoice begins = *ChooseForAuto(directory_, {});
  EXPECT_EQ(StepsOf(begins.candidates), (std::vector<int64_t>{1})) << "of an older planc";
  EXPECT_TRUE(begins.adopts_unidentified);
  EXPECT_EQ(begins.others, (std::vector<std::string>{kOther, kOwn}));
}

TEST(ChainTest, OnTheChainIsWhatTheLastBranchGoesOnFrom) {
  EXPECT_TRUE(IsOnChain({}, 0, 1000));
  // From 1000 back to 500, from there to 700.
  const std::vector<BranchPoint> once = {{0, 500}};
  EXPECT_TRUE(IsOnChain(once, 0, 500));
  EXPECT_FALSE(IsOnChain(once, 0, 600));
  EXPECT_TRUE(IsOnChain(once, 1, 600));
  // And back to 600 of the second way, or to 900 of the first one.
  const std::vector<BranchPoint> twice = {{0, 500}, {1, 600}};
  EXPECT_TRUE(IsOnChain(twice, 0, 400));
  EXPECT_FALSE(IsOnChain(twice, 0, 550));
  EXPECT_TRUE(IsOnChain(twice, 1, 600));
  EXPECT_FALSE(IsOnChain(twice, 1, 700));
  const std::vector<BranchPoint> first_again = {{0, 500}, {0, 900}};
  EXPECT_TRUE(IsOnChain(first_again, 0, 900));
  EXPECT_FALSE(IsOnChain(first_again, 0, 1000));
  EXPECT_FALSE(IsOnChain(first_again, 1, 600));
  EXPECT_TRUE(IsOnChain(first_again, 2, 950));
  // Beyond the step of an earlier point, although the last one is later.
  EXPECT_FALSE(IsOnChain({{0, 500}, {1, 900}}, 0, 700));
  // A damaged record leads nowhere, and ends.
  EXPECT_FALSE(IsOnChain({{7, 500}}, 3, 100));
}

}  // namespace
}  // namespace planc
