#include "runtime/data/token_loader.h"

#include <cstdint>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/cross_entropy.h"

namespace planc {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kSequence = 8;

// `tokens` little-endian uint16 values 0, 1, 2, ...
void WriteCounting(const std::string& name, int tokens) {
  std::ofstream out(testing::TempDir() + name, std::ios::binary);
  for (int i = 0; i < tokens; ++i) {
    out.put(static_cast<char>(i & 0xff));
    out.put(static_cast<char>(i >> 8));
  }
}

Plan PlanFor(int64_t replicate, int64_t shard, int64_t global) {
  Plan plan;
  plan.job.mutable_batch()->set_sequence(kSequence);
  plan.job.mutable_batch()->set_global(global);
  plan.job.mutable_run()->set_seed(1234);
  plan.job.mutable_model()->set_vocab(4096);
  plan.job.mutable_data()->set_format(proto::TOKENS);
  plan.job.mutable_data()->set_token_bytes(2);
  plan.job.mutable_data()->add_train("train.bin");
  plan.mesh.size = {1, replicate, shard, 1, 1};
  return plan;
}

// First tokens of the sequences of one step, over all ranks and microbatches.
std::multiset<int32_t> FirstTokens(TokenLoader& loader, int64_t step, int64_t dp, int64_t micro,
                                   int64_t accumulation) {
  std::multiset<int32_t> result;
  std::vector<int32_t> tokens(static_cast<size_t>(micro * kSequence));
  for (int64_t m = 0; m < accumulation; ++m) {
    for (int64_t rank = 0; rank < dp; ++rank) {
      EXPECT_TRUE(loader.LoadTokens({step, m, rank, micro * kSequence}, tokens.data()).ok());
      for (int64_t i = 0; i < micro; ++i) result.insert(tokens[static_cast<size_t>(i * kSequence)]);
    }
  }
  return result;
}

TEST(TokenLoaderTest, EverySplitOfTheBatchCoversItOnce) {
  for (const int64_t dp : {1, 2, 3, 4}) {
    for (const int64_t micro : {1, 2, 3}) {
      for (const int64_t accumulation : {1, 2, 5}) {
        std::set<int64_t> seen;
        for (int64_t m = 0; m < accumulation; ++m) {
          for (int64_t rank = 0; rank < dp; ++rank) {
            for (int64_t i = 0; i < micro; ++i) {
              seen.insert(GlobalSequenceIndex(m, rank, dp, micro, i));
            }
          }
        }
        const int64_t global = dp * micro * accumulation;
        EXPECT_EQ(static_cast<int64_t>(seen.size()), global);
        EXPECT_EQ(*seen.begin(), 0);
        EXPECT_EQ(*seen.rbegin(), global - 1);
      }
    }
  }
}

TEST(TokenLoaderTest, TheMeshDoesNotChangeTheData) {
  WriteCounting("train.bin", 1001);
  const auto one = TokenLoader::OpenTraining(PlanFor(1, 1, 12), testing::TempDir());
  const auto six = TokenLoader::OpenTraining(PlanFor(3, 2, 12), testing::TempDir());
  ASSERT_TRUE(one.ok() && six.ok()) << one.status() << six.status();
  for (int64_t step = 0; step < 30; ++step) {
    const auto expected = FirstTokens(**one, step, 1, 12, 1);
    EXPECT_EQ(FirstTokens(**one, step, 1, 3, 4), expected);
    EXPECT_EQ(FirstTokens(**six, step, 6, 2, 1), expected);
    EXPECT_EQ(FirstTokens(**six, step, 6, 1, 2), expected);
  }
}

TEST(TokenLoaderTest, EveryWindowOncePerEpoch) {
  WriteCounting("train.bin", 1001);  // 125 windows
  const auto loader = TokenLoader::OpenTraining(PlanFor(1, 1, 5), testing::TempDir());
  ASSERT_TRUE(loader.ok());
  EXPECT_EQ((*loader)->windows(), 125);
  for (int epoch = 0; epoch < 3; ++epoch) {
    std::set<int64_t> seen;
    for (int64_t step = 0; step < 25; ++step) {
      for (int64_t i = 0; i < 5; ++i) seen.insert((*loader)->WindowOf(epoch * 25 + step, i));
    }
    EXPECT_EQ(seen.size(), 125u);
  }
}

TEST(TokenLoaderTest, TargetsAreTheNextTokens) {
  WriteCounting("train.bin", 1001);
  const auto loader = TokenLoader::OpenTraining(PlanFor(1, 1, 4), testing::TempDir());
  ASSERT_TRUE(loader.ok());
  std::vector<int32_t> tokens(2 * kSequence);
  std::vector<int32_t> targets(2 * kSequence);
  for (int64_t step = 0; step < 32; ++step) {
    ASSERT_TRUE((*loader)->LoadTokens({step, 1, 0, 2 * kSequence}, tokens.data()).ok());
    ASSERT_TRUE((*loader)->LoadTargets({step, 1, 0, 2 * kSequence}, targets.data()).ok());
    for (size_t i = 0; i < tokens.size(); ++i) EXPECT_EQ(targets[i], tokens[i] + 1);
    EXPECT_EQ(tokens[0] % kSequence, 0);
  }
  EXPECT_EQ((*loader)->LoadTokens({0, 0, 0, kSequence + 1}, tokens.data()).code(),
            absl::StatusCode::kInternal);
}

TEST(TokenLoaderTest, ValidationGoesThroughTheFileOnceInOrder) {
  WriteCounting("validation.bin", 41);  // 5 windows
  Plan plan = PlanFor(1, 1, 2);
  const auto none = TokenLoader::OpenValidation(plan, testing::TempDir());
  ASSERT_TRUE(none.ok());
  EXPECT_EQ(*none, nullptr);
  plan.job.mutable_data()->add_validation("validation.bin");
  const auto loader = TokenLoader::OpenValidation(plan, testing::TempDir());
  ASSERT_TRUE(loader.ok());
  std::vector<int64_t> windows;
  for (int64_t batch = 0; batch < 3; ++batch) {
    for (int64_t i = 0; i < 2; ++i) windows.push_back((*loader)->WindowOf(batch, i));
  }
  EXPECT_EQ(windows, (std::vector<int64_t>{0, 1, 2, 3, 4, TokenLoader::kNoWindow}));
  // What is left of the last batch counts in no loss, and is a token that any model has.
  std::vector<int32_t> tokens(2 * kSequence);
  std::vector<int32_t> targets(2 * kSequence);
  ASSERT_TRUE((*loader)->LoadTokens({2, 0, 0, 2 * kSequence}, tokens.data()).ok());
  ASSERT_TRUE((*loader)->LoadTargets({2, 0, 0, 2 * kSequence}, targets.data()).ok());
  for (int i = 0; i < kSequence; ++i) {
    EXPECT_EQ(tokens[i], 4 * kSequence + i);
    EXPECT_EQ(targets[i], 4 * kSequence + i + 1);
    EXPECT_EQ(tokens[kSequence + i], 0);
    EXPECT_EQ(targets[kSequence + i], host::kIgnoredTarget);
  }
}

TEST(TokenLoaderTest, InspectDataFindsEverything) {
  WriteCounting("train.bin", 1001);
  WriteCounting("short.bin", kSequence);
  WriteCounting("exact.bin", kSequence + 1);
  Plan plan = PlanFor(1, 1, 2);
  EXPECT_TRUE(InspectData(plan.job, testing::TempDir()).ToStatus().ok());
  plan.job.mutable_data()->add_validation("exact.bin");
  EXPECT_TRUE(InspectData(plan.job, testing::TempDir()).ToStatus().ok());
  plan.job.mutable_data()->set_validation(0, "short.bin");
  plan.job.mutable_model()->set_vocab(1000);
  const absl::Status status = InspectData(plan.job, testing::TempDir()).ToStatus();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  const std::string message(status.message());
  EXPECT_THAT(message, HasSubstr("data.train: "));
  EXPECT_THAT(message, HasSubstr("train.bin: token 1000 is 1000, but model.vocab is 1000"));
  EXPECT_THAT(message, HasSubstr("data.validation: "));
  EXPECT_THAT(message, HasSubstr("8 tokens, but one window needs batch.sequence + 1 = 9"));
}

}  // namespace
}  // namespace planc
