// The numbers of the example in docs/data.md.
#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/data/token_loader.h"

namespace planc {
namespace {

using ::testing::HasSubstr;

void WriteNumbers(const std::string& name, int first, int end) {
  std::ofstream out(testing::TempDir() + name, std::ios::binary);
  for (int i = first; i < end; ++i) {
    out.put(static_cast<char>(i));
    out.put('\0');
  }
}

// The document with each run of blanks and line breaks as one blank.
std::string Document() {
  std::ifstream file("docs/data.md");
  std::string text;
  for (std::string word; file >> word;) absl::StrAppend(&text, text.empty() ? "" : " ", word);
  return text;
}

std::vector<int64_t> WindowsOf(const TokenLoader& loader, int64_t first, int64_t count) {
  std::vector<int64_t> windows;
  for (int64_t p = first; p < first + count; ++p) windows.push_back(loader.WindowOf(p / 4, p % 4));
  return windows;
}

TEST(DataExampleTest, TheDocumentSaysWhatTheLoaderDoes) {
  WriteNumbers("first.bin", 0, 25);
  WriteNumbers("second.bin", 25, 46);
  Plan plan;
  plan.job.mutable_batch()->set_sequence(8);
  plan.job.mutable_batch()->set_global(4);
  plan.job.mutable_run()->set_seed(1234);
  plan.job.mutable_model()->set_vocab(64);
  plan.job.mutable_data()->set_format(proto::TOKENS);
  plan.job.mutable_data()->set_token_bytes(2);
  plan.job.mutable_data()->add_train("first.bin");
  plan.job.mutable_data()->add_train("second.bin");
  plan.mesh.size = {1, 1, 2, 1, 1};
  const auto opened = TokenLoader::OpenTraining(plan, testing::TempDir());
  ASSERT_TRUE(opened.ok()) << opened.status();
  TokenLoader& loader = **opened;
  EXPECT_EQ(loader.stream().tokens(), 46);
  EXPECT_EQ(loader.windows(), 5);

  // The window of each rank and microbatch of step 0, by its first token.
  const auto window_at = [&](int64_t microbatch, int64_t rank) {
    std::vector<int32_t> tokens(8);
    std::vector<int32_t> targets(8);
    EXPECT_TRUE(loader.LoadTokens({0, microbatch, rank, 8}, tokens.data()).ok());
    EXPECT_TRUE(loader.LoadTargets({0, microbatch, rank, 8}, targets.data()).ok());
    for (size_t i = 0; i < tokens.size(); ++i) EXPECT_EQ(targets[i], tokens[i] + 1);
    for (size_t i = 1; i < tokens.size(); ++i) EXPECT_EQ(tokens[i], tokens[0] + int32_t(i));
    EXPECT_EQ(tokens[0] % 8, 0);
    return tokens[0] / 8;
  };
  const std::string document = Document();
  const auto list = [&](int64_t first, int64_t count) {
    return absl::StrJoin(WindowsOf(loader, first, count), ", ");
  };
  EXPECT_THAT(document,
              HasSubstr(absl::StrCat("Epoch 0 takes the windows in the order ", list(0, 5),
                                     ", epoch 1 in the order ", list(5, 5), ".")));
  EXPECT_THAT(document, HasSubstr(absl::StrCat("Step 0 has the windows ", list(0, 4),
                                               ", and step 1 the windows ", list(4, 4), ":")));
  EXPECT_THAT(document, HasSubstr(absl::StrCat("rank 0 computes with window ", window_at(0, 0),
                                               " in its first microbatch and window ",
                                               window_at(1, 0), " in its second; rank 1 with ",
                                               window_at(0, 1), " and ", window_at(1, 1), ".")));
}

}  // namespace
}  // namespace planc
