// Golden files: for each job tests/golden/NAME.yaml, NAME.plan.txt is the canonical text of its
// plan and NAME.show.txt what `planc plan` prints about it. After an intended change:
//   bazel run --config=opt //tests:golden_test -- --update=$PWD
#include <gtest/gtest.h>

#include <cstddef>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "planc/commands.h"
#include "planc/load_plan.h"
#include "planc/text.h"
#include "schemas/plan.h"
#include "tests/golden_file.h"

namespace planc {
namespace {

// Jobs that compile in a moment and between them use every mesh axis.
const std::vector<std::string>& Names() {
  static const auto* const names = new std::vector<std::string>{
      "one_rank", "one_microbatch", "pipeline", "tensor_zero2", "zero3"};
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
  CompareOrUpdateGolden(Path(".plan.txt"), PlanText(loaded.plan));
}

TEST_P(GoldenTest, Show) {
  const std::string text = ShowText(Path(".yaml"));
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(line.size(), size_t{kColumns}) << line;
  }
  CompareOrUpdateGolden(Path(".show.txt"), text);
}

INSTANTIATE_TEST_SUITE_P(Jobs, GoldenTest, testing::ValuesIn(Names()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace planc
