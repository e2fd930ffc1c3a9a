// Golden files: for each job tests/golden/NAME.yaml, NAME.plan.txt is the canonical text of its
// plan and NAME.show.txt what `planc plan` prints about it. After an intended change:
//   bazel run --config=opt //tests:golden_test -- --update=$PWD
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "planc/commands.h"
#include "planc/load_plan.h"
#include "planc/text.h"
#include "schemas/plan.h"

namespace planc {
namespace {

// Where to rewrite the golden files: the workspace, or "" to compare.
std::string& UpdateRoot() {
  static auto* const root = new std::string;
  return *root;
}

// Jobs that compile in a moment and between them use every mesh axis.
const std::vector<std::string>& Names() {
  static const auto* const names =
      new std::vector<std::string>{"one_rank", "pipeline", "tensor_zero2", "zero3"};
  return *names;
}

std::string ShowText(const std::string& job) {
  std::ostringstream out;
  std::ostringstream err;
  const int code =
      RunPlan({job, "--show=summary,mesh,groups,ranks,memory,comm,timeline"}, out, err);
  EXPECT_EQ(code, kExitOk) << err.str();
  return out.str();
}

// The first line in which the texts differ, with both versions.
std::string FirstDifference(const std::string& expected, const std::string& actual) {
  const std::vector<std::string> a = absl::StrSplit(expected, '\n');
  const std::vector<std::string> b = absl::StrSplit(actual, '\n');
  for (size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
    const std::string left = i < a.size() ? a[i] : "<end>";
    const std::string right = i < b.size() ? b[i] : "<end>";
    if (left != right)
      return absl::StrCat("line ", i + 1, "\n  golden: ", left, "\n  now:    ", right);
  }
  return "";
}

void CompareOrUpdate(const std::string& path, const std::string& actual) {
  if (!UpdateRoot().empty()) {
    const absl::Status written = WriteFile(absl::StrCat(UpdateRoot(), "/", path), actual);
    EXPECT_TRUE(written.ok()) << written;
    return;
  }
  const absl::StatusOr<std::string> expected = ReadFile(path);
  ASSERT_TRUE(expected.ok()) << expected.status();
  EXPECT_EQ(FirstDifference(*expected, actual), "") << path;
}

class GoldenTest : public testing::TestWithParam<std::string> {
 protected:
  std::string Path(const std::string& suffix) const {
    return absl::StrCat("tests/golden/", GetParam(), suffix);
  }
};

TEST_P(GoldenTest, PlanText) {
  LoadedPlan loaded;
  std::ostringstream err;
  ASSERT_EQ(LoadPlan("golden", Path(".yaml"), {}, err, &loaded), kExitOk) << err.str();
  CompareOrUpdate(Path(".plan.txt"), PlanText(loaded.plan));
}

TEST_P(GoldenTest, Show) {
  const std::string text = ShowText(Path(".yaml"));
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(line.size(), size_t{kColumns}) << line;
  }
  CompareOrUpdate(Path(".show.txt"), text);
}

INSTANTIATE_TEST_SUITE_P(Jobs, GoldenTest, testing::ValuesIn(Names()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace planc

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const std::string flag = "--update=";
  for (int i = 1; i < argc; ++i) {
    if (std::string(argv[i]).rfind(flag, 0) == 0) {
      planc::UpdateRoot() = std::string(argv[i]).substr(flag.size());
    }
  }
  return RUN_ALL_TESTS();
}
