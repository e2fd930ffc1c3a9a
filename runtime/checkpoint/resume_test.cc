#include "runtime/checkpoint/resume.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/instruction_set.h"
#include "runtime/checkpoint/checkpoint_directory.h"
#include "runtime/checkpoint/manifest.h"
#include "runtime/checkpoint/resume_check.h"
#include "runtime/checkpoint/save.h"
#include "runtime/checkpoint/test_plan.h"
#include "runtime/checkpoint/test_state.h"

namespace planc {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class ResumeTrainingTest : public testing::Test {
 protected:
  ResumeTrainingTest() {
    directory_ = testing::TempDir() + "resume_" +
                 testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::remove_all(directory_);
  }
  std::string directory_;
};

// What is not visible to all ranks at once, as on a network file system, is waited for.
TEST_F(ResumeTrainingTest, WaitsUntilAllRanksSeeTheSameCheckpoints) {
  const Plan plan = CheckpointTestPlan(1, 1, 2, 1);
  ASSERT_TRUE(SaveState(plan, directory_, 5, 1).ok());
  const std::string other = directory_ + "_of_rank_1";
  fs::remove_all(other);
  std::thread server([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    fs::copy(directory_, other + ".tmp", fs::copy_options::recursive);
    fs::rename(other + ".tmp", other);
  });
  const absl::Status status = OnAllRanks(plan, [&](int64_t rank, Agreement& agreement) {
    TestShards shards(plan, rank);
    std::vector<std::string> notices;
    const auto step = ResumeTraining(plan, TpOf(plan, rank), rank == 0 ? directory_ : other, "",
                                     shards.Views(), agreement, &notices);
    EXPECT_TRUE(step.ok()) << step.status();
    if (step.ok()) {
      EXPECT_EQ(step->value_or(0), 5);
    }
    return step.status();
  });
  server.join();
  EXPECT_TRUE(status.ok()) << status;
}

TEST_F(ResumeTrainingTest, AStopSignalOfOneRankEndsItOnAll) {
  const Plan plan = CheckpointTestPlan(1, 1, 2, 1);
  ASSERT_TRUE(SaveState(plan, directory_, 5, 1).ok());
  const absl::Status status = OnAllRanks(plan, [&](int64_t rank, Agreement& agreement) {
    TestShards shards(plan, rank);
    std::vector<std::string> notices;
    return ResumeTraining(plan, TpOf(plan, rank), directory_, "", shards.Views(), agreement,
                          &notices, [rank] { return rank == 1; })
        .status();
  });
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
}

// A checkpoint that was being replaced when the job died is one of the candidates.
TEST_F(ResumeTrainingTest, TakesACheckpointThatWasSetAside) {
  const Plan plan = CheckpointTestPlan(1, 1, 1, 1);
  ASSERT_TRUE(SaveState(plan, directory_, 5, 1).ok());
  fs::rename(directory_ + "/step-00000005", directory_ + "/step-00000005.old");
  TestShards shards(plan, 0);
  SoleAgreement agreement;
  std::vector<std::string> notices;
  const auto step = ResumeTraining(plan, 0, directory_, "", shards.Views(), agreement, &notices);
  ASSERT_TRUE(step.ok()) << step.status();
  EXPECT_EQ(step->value_or(0), 5);
  ASSERT_EQ(notices.size(), 1u);
  EXPECT_THAT(notices[0], HasSubstr("step-00000005.old, the newest checkpoint of 1"));
}

// Bytes that a rank reads, found element by element.
int64_t CountReadBytes(const Plan& plan, const Manifest& manifest, int64_t rank) {
  std::set<std::pair<std::string, std::string>> tensors;  // file, key
  std::set<std::string> files;
  int64_t bytes = 0;
  const auto touch = [&](const SavedTensor& tensor) {
    if (!tensors.insert({tensor.file, tensor.key}).second) return;
    bytes += 4 * BoxElements(tensor.box);
    if (files.insert(tensor.file).second) {
      bytes += manifest.files.at(tensor.file).bytes;
      for (const auto& [name, parameter] : manifest.parameters) {
        for (const auto& state : parameter.state) {
          for (const SavedTensor& other : state) {
            if (other.file == tensor.file) bytes -= 4 * BoxElements(other.box);
          }
        }
      }
    }
  };
  TestShards shards(plan, rank);
  for (const ShardView& view : shards.Views()) {
    for (int64_t i = 0; i < view.count; ++i) {
      const ElementPlace place = PlaceOf(plan, view.unit, TpOf(plan, rank), view.begin + i);
      if (place.parameter < 0) continue;
      const Parameter& parameter = plan.params[place.parameter];
      const int64_t columns = parameter.shape.back();
      const std::vector<int64_t> at =
          parameter.shape.size() == 1
              ? std::vector<int64_t>{place.index}
              : std::vector<int64_t>{place.index / columns, place.index % columns};
      const Box element = {at, std::vector<int64_t>(at.size(), 1)};
      for (const auto& state :
           manifest.parameters.at(ParameterName(parameter.name, view.layer)).state) {
        for (const SavedTensor& tensor : state) {
          if (Intersect(tensor.box, element) == element) touch(tensor);
        }
      }
    }
  }
  return bytes;
}

// bf16 on instructions with other bits is said; fp32, the same bits, and manifests that do not
// record it are not.
TEST_F(ResumeTrainingTest, InstructionsWithOtherBitsAreSaid) {
  Plan plan = CheckpointTestPlan(1, 1, 1, 1);
  plan.job.mutable_precision()->set_compute(proto::BF16);
  const auto notices_on = [&](host::InstructionSet now) {
    const auto manifest = ReadManifest(directory_ + "/" + CheckpointName(5));
    EXPECT_TRUE(manifest.ok()) << manifest.status();
    const ResumeCheck check = CompareWithCheckpoint(plan, *manifest, now);
    EXPECT_TRUE(RefusalOf(check, directory_).ok());
    EXPECT_EQ(check.SameBits(), check.bits.empty());
    return NoticesOf(check, plan, *manifest);
  };
  SaveOptions options;
  options.instruction_set = host::InstructionSet::kAmxBf16;
  ASSERT_TRUE(SaveState(plan, directory_, 5, 1, options).ok());
  EXPECT_THAT(notices_on(host::InstructionSet::kAmxBf16), testing::IsEmpty());
  EXPECT_THAT(notices_on(host::InstructionSet::kAvx512),
              testing::ElementsAre(
                  HasSubstr("saved on instruction set amx_bf16, goes on on avx512, which sums bf16 "
                            "in another order")));
  plan.job.mutable_precision()->set_compute(proto::FP32);
  fs::remove_all(directory_);
  ASSERT_TRUE(SaveState(plan, directory_, 5, 1, options).ok());
  EXPECT_THAT(notices_on(host::InstructionSet::kAvx2), testing::IsEmpty());
  plan.job.mutable_precision()->set_compute(proto::BF16);
  fs::remove_all(directory_);
  ASSERT_TRUE(SaveState(plan, directory_, 5, 1).ok());
  EXPECT_THAT(notices_on(host::InstructionSet::kAmxBf16), testing::IsEmpty());
  fs::remove_all(directory_);
  options.instruction_set = host::InstructionSet::kAvx512;
  ASSERT_TRUE(SaveState(plan, directory_, 5, 1, options).ok());
  EXPECT_THAT(notices_on(host::InstructionSet::kAvx2), testing::IsEmpty());
}

TEST_F(ResumeTrainingTest, TheBytesThatAreReadArePredicted) {
  const std::vector<Plan> plans = {CheckpointTestPlan(1, 1, 1, 1), CheckpointTestPlan(1, 1, 3, 1),
                                   CheckpointTestPlan(2, 2, 2, 2), CheckpointTestPlan(3, 1, 2, 4)};
  for (size_t saver = 0; saver < plans.size(); ++saver) {
    const int64_t step = static_cast<int64_t>(saver) + 1;
    ASSERT_TRUE(SaveState(plans[saver], directory_, step, 1).ok());
    const auto manifest = ReadManifest(directory_ + "/" + CheckpointName(step));
    ASSERT_TRUE(manifest.ok()) << manifest.status();
    for (const Plan& loader : plans) {
      int64_t largest = 0;
      int64_t all = 0;
      for (int64_t rank = 0; rank < loader.mesh.WorldSize(); ++rank) {
        const int64_t bytes = CountReadBytes(loader, *manifest, rank);
        largest = std::max(largest, bytes);
        all += bytes;
      }
      const LoadSize size = LoadSizeOf(loader, *manifest);
      EXPECT_EQ(size.largest_bytes, largest);
      EXPECT_EQ(size.all_ranks_bytes, all);
      EXPECT_EQ(CountReadBytes(loader, *manifest, size.largest_rank), largest);
      EXPECT_GE(all, size.saved_bytes) << "somebody reads everything";
    }
  }
}

}  // namespace
}  // namespace planc
