#include "tests/golden_file.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"

namespace planc {
namespace {

// Where to rewrite the golden files: the workspace, or "" to compare.
std::string& UpdateRoot() {
  static auto* const root = new std::string;
  return *root;
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

}  // namespace

void CompareOrUpdateGolden(const std::string& path, const std::string& actual) {
  if (!UpdateRoot().empty()) {
    std::ofstream out(absl::StrCat(UpdateRoot(), "/", path), std::ios::binary);
    out << actual;
    out.close();
    EXPECT_TRUE(out.good()) << path << " cannot be written";
    return;
  }
  std::ifstream in(path, std::ios::binary);
  ASSERT_TRUE(in.good()) << path << " cannot be read";
  std::ostringstream expected;
  expected << in.rdbuf();
  EXPECT_EQ(FirstDifference(expected.str(), actual), "") << path;
}

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
