#include "compiler/catalog/models.h"

#include <set>
#include <string>

#include "compiler/catalog/parameter_count.h"
#include "gtest/gtest.h"

namespace planc {
namespace {

TEST(ModelsTest, ParameterCountsAreExact) {
  for (const ModelPreset& preset : ModelPresets()) {
    EXPECT_EQ(ParameterCount(preset.model), preset.parameters) << preset.name;
  }
}

// Counts that were published, written a second time so that a wrong row cannot agree with itself.
TEST(ModelsTest, PublishedCounts) {
  EXPECT_EQ(ParameterCount(FindModelPreset("llama3.1-8b")->model), 8030261248);
  EXPECT_EQ(ParameterCount(FindModelPreset("llama3.1-405b")->model), 405853388800);
  EXPECT_EQ(ParameterCount(FindModelPreset("qwen2.5-7b")->model), 7615616512);
  EXPECT_EQ(ParameterCount(FindModelPreset("qwen3-8b")->model), 8190735360);
  EXPECT_EQ(ParameterCount(FindModelPreset("gpt2-124m")->model), 124439808);
}

TEST(ModelsTest, UntyingAddsOneTable) {
  proto::Model model = FindModelPreset("gpt2-124m")->model;
  model.set_tie_embeddings(false);
  EXPECT_EQ(ParameterCount(model), 124439808 + 50257 * 768);
}

TEST(ModelsTest, NamesAreUniqueAndFound) {
  std::set<std::string> names;
  for (const ModelPreset& preset : ModelPresets()) {
    EXPECT_TRUE(names.insert(preset.name).second) << preset.name;
    EXPECT_EQ(FindModelPreset(preset.name), &preset);
  }
  EXPECT_EQ(FindModelPreset("llama9-1b"), nullptr);
}

}  // namespace
}  // namespace planc
