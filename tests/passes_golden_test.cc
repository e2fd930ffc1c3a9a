// One golden file per pass: the graph of tests/golden/passes/job.yaml after it. After an intended
// change:
//   bazel run --config=opt //tests:passes_golden_test -- --update=$PWD
#include <fstream>
#include <sstream>

#include "compiler/diagnostics/render_text.h"
#include "compiler/graph/graph_text.h"
#include "compiler/passes/passes.h"
#include "compiler/pipeline.h"
#include "compiler/spec/load_job.h"
#include "gtest/gtest.h"

namespace planc {
namespace {

constexpr char kFolder[] = "tests/golden/passes/";

// Where to rewrite the golden files: the workspace, or "" to compare.
std::string& UpdateRoot() {
  static auto* const root = new std::string;
  return *root;
}

std::vector<std::string> PassNames() {
  return {
#define PLANC_PASS_NAME(Name, name) #name,
      PLANC_PASSES(PLANC_PASS_NAME)
#undef PLANC_PASS_NAME
  };
}

class PassGolden : public testing::TestWithParam<std::string> {};

TEST_P(PassGolden, GraphAfterThePass) {
  const LoadResult loaded = LoadJob(std::string(kFolder) + "job.yaml", {});
  ASSERT_TRUE(loaded.ok) << RenderText(loaded.diagnostics, loaded.sources, false);
  const absl::StatusOr<StepGraph> graph = BuildGraph(loaded.spec, GetParam());
  ASSERT_TRUE(graph.ok()) << graph.status();
  const std::string path = kFolder + GetParam() + ".txt";
  if (!UpdateRoot().empty()) {
    std::ofstream(UpdateRoot() + "/" + path) << GraphText(*graph);
    return;
  }
  std::ifstream file(path);
  ASSERT_TRUE(file.good()) << path;
  std::stringstream golden;
  golden << file.rdbuf();
  EXPECT_EQ(GraphText(*graph), golden.str());
}

INSTANTIATE_TEST_SUITE_P(Passes, PassGolden, testing::ValuesIn(PassNames()),
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
