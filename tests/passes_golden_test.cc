// One golden file per pass: the graph of tests/golden/passes/job.yaml after it. After an intended
// change:
//   bazel run --config=opt //tests:passes_golden_test -- --update=$PWD
#include <string>
#include <vector>

#include "compiler/diagnostics/render_text.h"
#include "compiler/graph/graph_text.h"
#include "compiler/passes/passes.h"
#include "compiler/pipeline.h"
#include "compiler/spec/load_job.h"
#include "gtest/gtest.h"
#include "tests/golden_file.h"

namespace planc {
namespace {

constexpr char kFolder[] = "tests/golden/passes/";

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
  CompareOrUpdateGolden(kFolder + GetParam() + ".txt", GraphText(*graph));
}

INSTANTIATE_TEST_SUITE_P(Passes, PassGolden, testing::ValuesIn(PassNames()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace planc
