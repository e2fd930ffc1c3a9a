#include "compiler/spec/suggest.h"

#include <set>
#include <string>

#include "compiler/spec/job_schema.h"
#include "gtest/gtest.h"

namespace planc {
namespace {

using Names = std::vector<std::string>;

TEST(SuggestTest, DistanceCountsEdits) {
  EXPECT_EQ(EditDistance("", ""), 0);
  EXPECT_EQ(EditDistance("abc", ""), 3);
  EXPECT_EQ(EditDistance("heads", "head"), 1);
  EXPECT_EQ(EditDistance("layesr", "layers"), 1);
  EXPECT_EQ(EditDistance("kitten", "sitting"), 3);
}

TEST(SuggestTest, NearestKeepsItsDistance) {
  const Names words = {"none", "selective", "full"};
  EXPECT_EQ(Nearest("selectve", words), "selective");
  EXPECT_EQ(Nearest("FULL", words), "full");
  EXPECT_EQ(Nearest("everything", words), "");
  EXPECT_EQ(Nearest(std::string(1000, 'a'), words), "");
}

TEST(SuggestTest, NumbersAreNeverChanged) {
  const Names presets = {"llama2-7b", "llama3.1-8b", "llama3.1-70b", "gpt2-1558m", "gpt3-175b"};
  EXPECT_EQ(Nearest("llama3-8b", presets), "llama3.1-8b");
  EXPECT_EQ(Nearest("Llama-3.1-8B", presets), "llama3.1-8b");
  EXPECT_EQ(NearestNames("llama3", presets), (Names{"llama3.1-8b", "llama3.1-70b"}));
  EXPECT_EQ(Nearest("lama3.1-8b", presets), "llama3.1-8b");
  EXPECT_EQ(Nearest("gpt2-1.5b", presets), "");
  EXPECT_EQ(Nearest("llama2-8b", presets), "");
  EXPECT_EQ(Nearest("fp33", {"fp32", "bf16"}), "");
  EXPECT_EQ(Nearest("h100-sxm-40gb", {"a100-sxm-40gb", "h100-sxm-80gb"}), "");
  EXPECT_EQ(Nearest("1fb1", {"gpipe", "1f1b"}), "1f1b");
  EXPECT_EQ(Nearest("zbh1", {"zb_h1", "gpipe"}), "zb_h1");
}

TEST(SuggestTest, ShortWordsAreNotExchanged) {
  EXPECT_EQ(Nearest("-h", {"-o", "--set"}), "");
  EXPECT_EQ(Nearest("--hlep", {"--help", "--set"}), "--help");
  EXPECT_EQ(SuggestKeys("mesh", "dp"), Names{"mesh.dp_shard"});
  EXPECT_EQ(SuggestKeys("mesh", "tpp"), Names{"mesh.tp"});
  EXPECT_EQ(SuggestKeys("mesh", "pt"), Names{"mesh.tp"});
  EXPECT_EQ(SuggestKeys("mesh", "xy"), Names{});
}

TEST(SuggestTest, NamesOfOtherPrograms) {
  std::set<std::string> seen;
  for (const OtherName& other : OtherNames()) {
    EXPECT_TRUE(seen.insert(other.name).second) << other.name << " has two meanings";
    EXPECT_TRUE(other.key.empty() || FindJobKey(other.key) != nullptr) << other.key;
    EXPECT_TRUE(!other.key.empty() || !other.note.empty()) << other.name;
    // A key of ours in its own section needs no translation.
    EXPECT_EQ(FindJobKey(other.name), nullptr) << other.name;
  }
  EXPECT_EQ(SuggestKeys("", "hidden_size"), Names{"model.hidden"});
  EXPECT_EQ(SuggestKeys("training", "seq_len"), Names{"batch.sequence"});
  EXPECT_EQ(SuggestKeys("zero_optimization", "stage"), Names{"parallelism.zero"});
  EXPECT_EQ(SuggestKeys("model", "attention_dropout"), Names{});
  ASSERT_NE(FindOtherName("optimizer", "min_lr"), nullptr);
  EXPECT_EQ(FindOtherName("optimizer", "min_lr")->note, "min_ratio = min_lr / optimizer.lr");
}

TEST(SuggestTest, KeysOfTheSameSectionComeFirst) {
  EXPECT_EQ(SuggestKeys("mesh", "dpshard"), Names{"mesh.dp_shard"});
  EXPECT_EQ(SuggestKeys("mesh", "dp-shard"), Names{"mesh.dp_shard"});
  ASSERT_FALSE(SuggestKeys("batch", "sequnce").empty());
  EXPECT_EQ(SuggestKeys("batch", "sequnce").front(), "batch.sequence");
}

TEST(SuggestTest, KeysOfOtherSectionsAreFound) {
  EXPECT_EQ(SuggestKeys("", "zero"), Names{"parallelism.zero"});
  EXPECT_EQ(SuggestKeys("parallelism", "virtual_stages"),
            Names{"parallelism.pipeline.virtual_stages"});
  EXPECT_EQ(SuggestKeys("model", "qqqqq"), Names{});
}

}  // namespace
}  // namespace planc
