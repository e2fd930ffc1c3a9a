#include <barrier>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/checkpoint/checkpoint_directory.h"
#include "runtime/checkpoint/load.h"
#include "runtime/checkpoint/manifest.h"
#include "runtime/checkpoint/save.h"
#include "runtime/checkpoint/test_plan.h"
#include "runtime/checkpoint/verify_checkpoint.h"

namespace planc {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

// Agreement between threads of this process.
class ThreadAgreement : public Agreement {
 public:
  explicit ThreadAgreement(int64_t ranks) : barrier_(ranks) {}

  absl::Status AllOk(const absl::Status& mine) override {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (verdict_.ok()) verdict_ = mine;
    }
    barrier_.arrive_and_wait();
    const absl::Status verdict = verdict_;
    barrier_.arrive_and_wait();
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      verdict_ = absl::OkStatus();
    }
    barrier_.arrive_and_wait();
    return verdict;
  }
  absl::Status SameEverywhere(const std::string&, const std::string& value) override {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      values_.push_back(value);
    }
    barrier_.arrive_and_wait();
    bool same = true;
    for (const std::string& other : values_) same = same && other == value;
    barrier_.arrive_and_wait();
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      values_.clear();
    }
    barrier_.arrive_and_wait();
    return same ? absl::OkStatus() : absl::FailedPreconditionError("values differ");
  }

 private:
  std::barrier<> barrier_;
  std::mutex mutex_;
  absl::Status verdict_;
  std::vector<std::string> values_;
};

// Runs `body(rank, agreement)` for every rank of the plan at once; returns rank 0's result.
absl::Status OnAllRanks(const Plan& plan,
                        const std::function<absl::Status(int64_t, Agreement&)>& body) {
  const int64_t ranks = plan.mesh.WorldSize();
  ThreadAgreement agreement(ranks);
  std::vector<absl::Status> results(static_cast<size_t>(ranks));
  std::vector<std::thread> threads;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] { results[static_cast<size_t>(rank)] = body(rank, agreement); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const absl::Status& result : results) EXPECT_EQ(result.code(), results[0].code());
  return results[0];
}

int64_t TpOf(const Plan& plan, int64_t rank) {
  return plan.mesh.CoordinatesOf(rank)[static_cast<int>(Axis::kTp)];
}

// The value that element `index` of a parameter's state is given; `salt` tells checkpoints apart.
float ValueOf(const Plan& plan, int parameter, int layer, int state, int64_t index, int salt) {
  const bool per_layer = plan.units[plan.params[parameter].unit].per_layer;
  return static_cast<float>(salt * 1000000 + state * 300000 + parameter * 10000 +
                            (per_layer ? layer : 0) * 1000 + index);
}

// Calls `visit(value&, expected)` for all elements of a rank, padding expected to be 0.
void VisitState(const Plan& plan, int64_t tp, const std::vector<ShardView>& views, int salt,
                const std::function<void(float&, float)>& visit) {
  for (const ShardView& view : views) {
    for (int64_t i = 0; i < view.count; ++i) {
      const ElementPlace place = PlaceOf(plan, view.unit, tp, view.begin + i);
      int state = 0;
      for (float* const values : {view.master, view.m, view.v}) {
        const bool padding = place.parameter < 0;
        visit(
            values[i],
            padding ? 0.0f : ValueOf(plan, place.parameter, view.layer, state, place.index, salt));
        ++state;
      }
    }
  }
}

absl::Status Save(const Plan& plan, const std::string& directory, int64_t step, int salt) {
  return OnAllRanks(plan, [&](int64_t rank, Agreement& agreement) {
    TestShards shards(plan, rank);
    VisitState(plan, TpOf(plan, rank), shards.Views(), salt,
               [](float& value, float expected) { value = expected; });
    return SaveCheckpoint(plan, rank, shards.Views(), step, directory, agreement);
  });
}

// Loads on every rank of `plan` and compares all values.
absl::Status LoadAndCompare(const Plan& plan, const std::string& checkpoint, int salt) {
  for (int64_t rank = 0; rank < plan.mesh.WorldSize(); ++rank) {
    TestShards shards(plan, rank);
    const auto step = LoadCheckpoint(plan, TpOf(plan, rank), checkpoint, shards.Views());
    if (!step.ok()) return step.status();
    int64_t wrong = 0;
    VisitState(plan, TpOf(plan, rank), shards.Views(), salt, [&](float& value, float expected) {
      wrong += static_cast<int64_t>(value != expected);
    });
    EXPECT_EQ(wrong, 0) << "rank " << rank;
  }
  return absl::OkStatus();
}

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
    const absl::Status saved = Save(plans[saver], directory_, salt, salt);
    ASSERT_TRUE(saved.ok()) << saved;
    const auto report = VerifyCheckpoint(PathOf(salt));
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_THAT(report->defects, testing::IsEmpty());
    EXPECT_EQ(report->parameters, 1 + 3 * 4);
    EXPECT_EQ(report->elements, 13 * 6 + 3 * (72 + 72 + 12 + 6));
    for (const Plan& loader : plans) {
      const absl::Status loaded = LoadAndCompare(loader, PathOf(salt), salt);
      EXPECT_TRUE(loaded.ok()) << loaded;
    }
  }
}

TEST_F(CheckpointTest, ManifestDescribesTheRun) {
  const Plan plan = CheckpointTestPlan(1, 1, 2, 2);
  ASSERT_TRUE(Save(plan, directory_, 7, 1).ok());
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
  for (const int64_t step : {5, 10, 15}) ASSERT_TRUE(Save(plan, directory_, step, 1).ok());
  EXPECT_EQ(Steps(), (std::vector<int64_t>{10, 15}));
  EXPECT_FALSE(fs::exists(directory_ + "/step-00000001.tmp"));
  EXPECT_FALSE(fs::exists(PathOf(5)));
  EXPECT_TRUE(fs::exists(directory_ + "/step-2"));
}

TEST_F(CheckpointTest, SavesAStepAgain) {
  const Plan plan = CheckpointTestPlan(1, 1, 2, 1);
  ASSERT_TRUE(Save(plan, directory_, 5, 1).ok());
  ASSERT_TRUE(Save(CheckpointTestPlan(1, 1, 1, 1), directory_, 5, 2).ok());
  EXPECT_EQ(Steps(), (std::vector<int64_t>{5}));
  EXPECT_TRUE(LoadAndCompare(plan, PathOf(5), 2).ok());
}

TEST_F(CheckpointTest, EveryRankLearnsThatSavingFailed) {
  const Plan plan = CheckpointTestPlan(1, 1, 3, 1);
  std::ofstream(testing::TempDir() + "a_file") << "not a folder";
  const absl::Status status = Save(plan, testing::TempDir() + "a_file", 5, 1);
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()), HasSubstr("a_file/step-00000005.tmp"));
}

TEST_F(CheckpointTest, AnyFlippedBitIsFound) {
  const Plan plan = CheckpointTestPlan(1, 1, 2, 1);
  ASSERT_TRUE(Save(plan, directory_, 1, 1).ok());
  int64_t flips = 0;
  for (const auto& entry : fs::directory_iterator(PathOf(1))) {
    const int64_t size = static_cast<int64_t>(entry.file_size());
    for (int64_t at = flips % 13; at < size; at += 1 + size / 50) {
      std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
      const auto flip = [&] {
        file.seekg(at);
        const char byte = static_cast<char>(file.get() ^ (1 << (at % 8)));
        file.seekp(at);
        file.put(byte);
        file.flush();
      };
      flip();
      const auto report = VerifyCheckpoint(PathOf(1));
      EXPECT_TRUE(!report.ok() || !report->defects.empty()) << entry.path() << " byte " << at;
      flip();
      ++flips;
    }
  }
  EXPECT_GT(flips, 100);
  const auto report = VerifyCheckpoint(PathOf(1));
  ASSERT_TRUE(report.ok());
  EXPECT_THAT(report->defects, testing::IsEmpty());
}

TEST_F(CheckpointTest, NamesWhatIsDamaged) {
  const Plan plan = CheckpointTestPlan(1, 1, 2, 1);
  ASSERT_TRUE(Save(plan, directory_, 1, 1).ok());
  const std::string file = PathOf(1) + "/rank-00001.safetensors";
  const auto message = [&] {
    const absl::Status status = LoadAndCompare(plan, PathOf(1), 1);
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
  EXPECT_EQ(LoadAndCompare(plan, PathOf(1), 1).code(), absl::StatusCode::kNotFound);
}

TEST_F(CheckpointTest, RefusesAnotherModel) {
  const Plan plan = CheckpointTestPlan(1, 1, 1, 1);
  ASSERT_TRUE(Save(plan, directory_, 1, 1).ok());
  Plan other = plan;
  other.params[0].name = "lm_head.weight";
  const absl::Status status = LoadAndCompare(other, PathOf(1), 1);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("lm_head.weight is not in the checkpoint"));
  other = plan;
  other.params[0].shape[1] = 5;
  EXPECT_THAT(std::string(LoadAndCompare(other, PathOf(1), 1).message()),
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
  ASSERT_TRUE(Save(plan, directory_, 10, 1).ok());
  ASSERT_TRUE(Save(plan, directory_, 20, 2).ok());
  EXPECT_EQ(Resume(plan, directory_, 2, &notices, &status), 20);
  EXPECT_THAT(notices, testing::IsEmpty());

  // One rank's damage sends all ranks back.
  const std::string file = PathOf(20) + "/rank-00003.safetensors";
  fs::resize_file(file, fs::file_size(file) - 1);
  EXPECT_EQ(Resume(plan, directory_, 1, &notices, &status), 10);
  ASSERT_EQ(notices.size(), 1u);
  EXPECT_THAT(notices[0], HasSubstr("passing over"));
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
