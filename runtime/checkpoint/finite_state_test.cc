// A training state that is not finite is neither saved nor loaded, whatever rank, tensor and kind
// of state it is in; what was saved before stays.
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/checkpoint/checkpoint_directory.h"
#include "runtime/checkpoint/manifest.h"
#include "runtime/checkpoint/resume.h"
#include "runtime/checkpoint/safetensors.h"
#include "runtime/checkpoint/save.h"
#include "runtime/checkpoint/test_plan.h"
#include "runtime/checkpoint/test_state.h"
#include "runtime/checkpoint/verify_checkpoint.h"

namespace planc {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

class FiniteStateTest : public testing::Test {
 protected:
  FiniteStateTest() {
    directory_ = testing::TempDir() + "finite_" +
                 testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::remove_all(directory_);
  }
  std::string PathOf(int64_t step) const { return directory_ + "/" + CheckpointName(step); }
  std::vector<std::string> Entries() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(directory_)) {
      names.push_back(entry.path().filename().string());
    }
    return names;
  }

  // Saves with one value on `rank` replaced: of state 0 to 2 of a shard.
  absl::Status SavePoisoned(const Plan& plan, int64_t rank, size_t shard, int state,
                            int64_t element, float value) {
    return OnAllRanks(plan, [&](int64_t here, Agreement& agreement) {
      TestShards shards(plan, here);
      const std::vector<ShardView> views = shards.Views();
      VisitState(plan, TpOf(plan, here), views, 2, [](float& v, float expected) { v = expected; });
      if (here == rank) {
        float* const states[] = {views[shard].master, views[shard].m, views[shard].v};
        states[state][element] = value;
      }
      return SaveCheckpoint(plan, here, views, 20, directory_, agreement);
    });
  }

  // Makes the last value of a parameter's first moment a NaN, with checksums as they should be:
  // what a planc that did not look would have saved.
  void Poison(int64_t step, const std::string& parameter) {
    auto manifest = ReadManifest(PathOf(step));
    ASSERT_TRUE(manifest.ok()) << manifest.status();
    SavedTensor& poisoned = manifest->parameters.at(parameter).state[1].back();
    const std::string path = PathOf(step) + "/" + poisoned.file;
    std::string values;
    {
      const auto file = SafetensorsFile::Open(path);
      ASSERT_TRUE(file.ok()) << file.status();
      const SafetensorsFile::Tensor& tensor = file->tensors().at(poisoned.key);
      values.assign(tensor.data, static_cast<size_t>(tensor.bytes));
    }
    std::ifstream stream(path, std::ios::binary);
    std::string bytes(std::istreambuf_iterator<char>(stream), {});
    const size_t at = bytes.find(values);
    ASSERT_NE(at, std::string::npos);
    values.replace(values.size() - 4, 4, reinterpret_cast<const char*>(&kNan), 4);
    bytes.replace(at, values.size(), values);
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
    poisoned.checksum = Checksum(values.data(), static_cast<int64_t>(values.size()));
    manifest->finite = false;
    std::ofstream(PathOf(step) + "/manifest.json", std::ios::trunc) << *ManifestText(*manifest);
  }

  std::string directory_;
};

TEST_F(FiniteStateTest, ASaveFindsEveryKindOfStateAndLeavesTheOlderOne) {
  Plan plan = CheckpointTestPlan(1, 1, 2, 2);
  plan.job.mutable_checkpoint()->set_keep(1);
  ASSERT_TRUE(SaveState(plan, directory_, 10, 1).ok());
  ASSERT_TRUE(ReadManifest(PathOf(10))->finite);
  for (int state = 0; state < 3; ++state) {
    for (const float value : {kInfinity, -kInfinity, kNan}) {
      const absl::Status status = SavePoisoned(plan, 3, 0, state, 4, value);
      EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange) << status;
      EXPECT_THAT(std::string(status.message()),
                  AllOf(HasSubstr("the training state after step 20 is not finite"),
                        HasSubstr("rank-00003.safetensors: tensor model."),
                        HasSubstr(absl::StrCat(".", StateKindName(kAllStateKinds[state]), ".")),
                        HasSubstr(": element [")));
      EXPECT_THAT(Entries(), ElementsAre("step-00000010"));
    }
  }
  EXPECT_TRUE(LoadState(plan, PathOf(10), 1).ok());
  // The next good one takes its place.
  ASSERT_TRUE(SaveState(plan, directory_, 20, 2).ok());
  EXPECT_THAT(Entries(), ElementsAre("step-00000020"));
}

TEST_F(FiniteStateTest, LoadingRefusesVerifySaysSoAndAutoGoesBack) {
  Plan plan = CheckpointTestPlan(1, 1, 2, 1);
  ASSERT_TRUE(SaveState(plan, directory_, 10, 1).ok());
  ASSERT_TRUE(SaveState(plan, directory_, 20, 2).ok());
  Poison(20, "model.embed_tokens.weight");
  const std::string what =
      "step-00000020/rank-00001.safetensors: tensor model.embed_tokens.weight.exp_avg.";
  const absl::Status loaded = LoadState(plan, PathOf(20), 2);
  EXPECT_EQ(loaded.code(), absl::StatusCode::kOutOfRange) << loaded;
  EXPECT_THAT(std::string(loaded.message()),
              AllOf(HasSubstr(what), HasSubstr(": element [12, 5] is nan")));
  const auto report = VerifyCheckpoint(PathOf(20));
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(report->defects, ElementsAre(AllOf(HasSubstr(what), HasSubstr("[12, 5] is nan"))));

  const auto resume = [&](std::vector<std::string>* notices) {
    return OnAllRanks(plan, [&](int64_t rank, Agreement& agreement) {
      TestShards shards(plan, rank);
      std::vector<std::string> mine;
      const auto step = ResumeTraining(plan, TpOf(plan, rank), directory_, directory_,
                                       shards.Views(), agreement, &mine);
      if (rank == 0) *notices = mine;
      if (step.ok()) {
        EXPECT_EQ(step->value_or(-1), 10);
      }
      return step.status();
    });
  };
  std::vector<std::string> notices;
  const absl::Status older = resume(&notices);
  EXPECT_TRUE(older.ok()) << older;
  EXPECT_THAT(notices,
              ElementsAre(AllOf(StartsWith("warning: passing over"), HasSubstr("[12, 5] is nan")),
                          HasSubstr("step-00000010, the newest undamaged checkpoint of 2")));
  plan.job.mutable_checkpoint()->set_resume(PathOf(20));
  EXPECT_EQ(resume(&notices).code(), absl::StatusCode::kOutOfRange);
  // Only such ones: no way to go on.
  Poison(10, "model.embed_tokens.weight");
  plan.job.mutable_checkpoint()->set_resume("auto");
  const absl::Status none = resume(&notices);
  EXPECT_EQ(none.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(none.message()), HasSubstr("none of 2 checkpoints can be read"));
}

}  // namespace
}  // namespace planc
