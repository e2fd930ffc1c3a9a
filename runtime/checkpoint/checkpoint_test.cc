#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/checkpoint/checkpoint_directory.h"
#include "runtime/checkpoint/load.h"
#include "runtime/checkpoint/manifest.h"
#include "runtime/checkpoint/resume.h"
#include "runtime/checkpoint/save.h"
#include "runtime/checkpoint/test_plan.h"
#include "runtime/checkpoint/test_state.h"
#include "runtime/checkpoint/verify_checkpoint.h"

namespace planc {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class CheckpointTest : public testing::Test {
 protected:
  CheckpointTest() {
    directory_ = testing::TempDir() + "checkpoints_" +
                 testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::remove_all(directory_);
  }
  std::string PathOf(int64_t step) const { return directory_ + "/" + CheckpointName(step); }
  std::vector<int64_t> Steps() const {
    std::vector<int64_t> steps;
    for (const CheckpointEntry& entry : ListCheckpoints(directory_)) steps.push_back(entry.step);
    return steps;
  }

  std::string directory_;
};

std::vector<Plan> AllPlans() {
  std::vector<Plan> plans;
  for (const std::vector<int64_t>& mesh : std::vector<std::vector<int64_t>>{
           {1, 1, 1, 1}, {1, 1, 3, 1}, {1, 1, 1, 4}, {2, 2, 2, 2}, {3, 1, 2, 1}, {1, 2, 5, 3}}) {
    plans.push_back(CheckpointTestPlan(mesh[0], mesh[1], mesh[2], mesh[3]));
  }
  return plans;
}

TEST_F(CheckpointTest, LoadsOnEveryMesh) {
  const std::vector<Plan> plans = AllPlans();
  for (size_t saver = 0; saver < plans.size(); ++saver) {
    const int salt = static_cast<int>(saver) + 1;
    const absl::Status saved = SaveState(plans[saver], directory_, salt, salt);
    ASSERT_TRUE(saved.ok()) << saved;
    const auto report = VerifyCheckpoint(PathOf(salt));
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_THAT(report->defects, testing::IsEmpty());
    EXPECT_EQ(report->parameters, 1 + 3 * 4);
    EXPECT_EQ(report->elements, 13 * 6 + 3 * (72 + 72 + 12 + 6));
    for (const Plan& loader : plans) {
      const absl::Status loaded = LoadState(loader, PathOf(salt), salt);
      EXPECT_TRUE(loaded.ok()) << loaded;
    }
  }
}

TEST_F(CheckpointTest, ManifestDescribesTheRun) {
  const Plan plan = CheckpointTestPlan(1, 1, 2, 2);
  ASSERT_TRUE(SaveState(plan, directory_, 7, 1).ok());
  const auto manifest = ReadManifest(PathOf(7));
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  EXPECT_EQ(manifest->step, 7);
  EXPECT_EQ(manifest->plan_hash, *PlanHash(plan));
  EXPECT_EQ(manifest->job.SerializeAsString(), plan.job.SerializeAsString());
  EXPECT_EQ(manifest->files.size(), 4u);
  EXPECT_EQ(manifest->parameters.at("model.embed_tokens.weight").shape,
            (std::vector<int64_t>{13, 6}));
}

TEST_F(CheckpointTest, KeepsTheNewestAndRemovesLeftovers) {
  const Plan plan = CheckpointTestPlan(1, 1, 1, 1);
  fs::create_directories(directory_ + "/step-00000001.tmp");
  fs::create_directories(directory_ + "/step-00000002");  // no manifest
  fs::create_directories(directory_ + "/step-2");
  for (const int64_t step : {5, 10, 15}) ASSERT_TRUE(SaveState(plan, directory_, step, 1).ok());
  EXPECT_EQ(Steps(), (std::vector<int64_t>{10, 15}));
  EXPECT_FALSE(fs::exists(directory_ + "/step-00000001.tmp"));
  EXPECT_FALSE(fs::exists(PathOf(5)));
  EXPECT_TRUE(fs::exists(directory_ + "/step-2"));
}

TEST_F(CheckpointTest, SavesAStepAgain) {
  const Plan plan = CheckpointTestPlan(1, 1, 2, 1);
  ASSERT_TRUE(SaveState(plan, directory_, 5, 1).ok());
  ASSERT_TRUE(SaveState(CheckpointTestPlan(1, 1, 1, 1), directory_, 5, 2).ok());
  EXPECT_EQ(Steps(), (std::vector<int64_t>{5}));
  EXPECT_TRUE(LoadState(plan, PathOf(5), 2).ok());
}

TEST_F(CheckpointTest, EveryRankLearnsThatSavingFailed) {
  const Plan plan = CheckpointTestPlan(1, 1, 3, 1);
  std::ofstream(testing::TempDir() + "a_file") << "not a folder";
  const absl::Status status = SaveState(plan, testing::TempDir() + "a_file", 5, 1);
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()), HasSubstr("a_file: cannot create: File exists"));
}

TEST_F(CheckpointTest, NamesWhatIsDamaged) {
  const Plan plan = CheckpointTestPlan(1, 1, 2, 1);
  ASSERT_TRUE(SaveState(plan, directory_, 1, 1).ok());
  const std::string file = PathOf(1) + "/rank-00001.safetensors";
  const auto message = [&] {
    const absl::Status status = LoadState(plan, PathOf(1), 1);
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
    return std::string(status.message());
  };
  const auto size = fs::file_size(file);
  {
    std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekp(static_cast<int64_t>(size) - 1);
    stream.put('!');
  }
  EXPECT_THAT(message(), HasSubstr("rank-00001.safetensors: tensor model."));
  EXPECT_THAT(message(), HasSubstr("does not have its checksum"));
  fs::resize_file(file, size - 4);
  EXPECT_THAT(message(), HasSubstr("rank-00001.safetensors: "));
  fs::remove(file);
  EXPECT_THAT(message(), HasSubstr("rank-00001.safetensors: No such file"));
  fs::remove(PathOf(1) + "/manifest.json");
  EXPECT_EQ(LoadState(plan, PathOf(1), 1).code(), absl::StatusCode::kNotFound);
}

TEST_F(CheckpointTest, RefusesAnotherModel) {
  const Plan plan = CheckpointTestPlan(1, 1, 1, 1);
  ASSERT_TRUE(SaveState(plan, directory_, 1, 1).ok());
  Plan other = plan;
  other.params[0].name = "lm_head.weight";
  const absl::Status status = LoadState(other, PathOf(1), 1);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("lm_head.weight is not in the checkpoint"));
  other = plan;
  other.params[0].shape[1] = 5;
  EXPECT_THAT(std::string(LoadState(other, PathOf(1), 1).message()),
              HasSubstr("is [13, 6] in the checkpoint, [13, 5] in the job"));
}

// Resumes on all ranks; returns the step (-1: starts anew) and checks the values.
int64_t Resume(const Plan& plan, const std::string& directory, int salt,
               std::vector<std::string>* notices, absl::Status* status) {
  int64_t resumed = -1;
  *status = OnAllRanks(plan, [&](int64_t rank, Agreement& agreement) {
    TestShards shards(plan, rank);
    std::vector<std::string> mine;
    const auto step = ResumeTraining(plan, TpOf(plan, rank), directory, directory, shards.Views(),
                                     agreement, &mine);
    if (rank == 0) *notices = mine;
    if (!step.ok() || !step->has_value()) return step.status();
    int64_t wrong = 0;
    VisitState(plan, TpOf(plan, rank), shards.Views(), salt, [&](float& value, float expected) {
      wrong += static_cast<int64_t>(value != expected);
    });
    EXPECT_EQ(wrong, 0);
    if (rank == 0) resumed = **step;
    return absl::OkStatus();
  });
  return resumed;
}

TEST_F(CheckpointTest, Resume) {
  Plan plan = CheckpointTestPlan(1, 1, 2, 2);
  std::vector<std::string> notices;
  absl::Status status;
  EXPECT_EQ(Resume(plan, directory_, 0, &notices, &status), -1);
  EXPECT_TRUE(status.ok()) << status;
  ASSERT_TRUE(SaveState(plan, directory_, 10, 1).ok());
  ASSERT_TRUE(SaveState(plan, directory_, 20, 2).ok());
  EXPECT_EQ(Resume(plan, directory_, 2, &notices, &status), 20);
  ASSERT_EQ(notices.size(), 1u);
  EXPECT_THAT(notices[0], HasSubstr("step-00000020, the newest checkpoint of 2"));

  // One rank's damage sends all ranks back.
  const std::string file = PathOf(20) + "/rank-00003.safetensors";
  fs::resize_file(file, fs::file_size(file) - 1);
  EXPECT_EQ(Resume(plan, directory_, 1, &notices, &status), 10);
  ASSERT_EQ(notices.size(), 2u);
  EXPECT_THAT(notices[0], HasSubstr("passing over"));
  EXPECT_THAT(notices[1], HasSubstr("step-00000010, the newest undamaged checkpoint of 2"));
  EXPECT_THAT(notices[0], HasSubstr("rank-00003.safetensors"));

  plan.job.mutable_checkpoint()->set_resume("step-00000010");
  EXPECT_EQ(Resume(plan, directory_, 1, &notices, &status), 10);
  plan.job.mutable_checkpoint()->set_resume(PathOf(20));
  EXPECT_EQ(Resume(plan, directory_, 1, &notices, &status), -1);
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  plan.job.mutable_checkpoint()->set_resume("never");
  EXPECT_EQ(Resume(plan, directory_, 1, &notices, &status), -1);
  EXPECT_TRUE(status.ok()) << status;

  fs::remove(PathOf(10) + "/rank-00000.safetensors");
  plan.job.mutable_checkpoint()->set_resume("auto");
  EXPECT_EQ(Resume(plan, directory_, 1, &notices, &status), -1);
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr("none of 2 checkpoints can be read"));
}

TEST_F(CheckpointTest, NamesOfCheckpoints) {
  EXPECT_EQ(CheckpointName(500), "step-00000500");
  EXPECT_EQ(StepOfName("step-00000500"), 500);
  EXPECT_EQ(StepOfName("step-123456789"), 123456789);
  for (const char* const name : {"step-500", "step-", "step-0000050x", "x", "step-00000500.tmp"}) {
    EXPECT_EQ(StepOfName(name), std::nullopt) << name;
  }
}

}  // namespace
}  // namespace planc
