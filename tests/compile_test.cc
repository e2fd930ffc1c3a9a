#include "compiler/pipeline.h"

#include "compiler/diagnostics/render_text.h"
#include "gtest/gtest.h"
#include "schemas/verify.h"
#include "tests/mesh_cases.h"

namespace planc {
namespace {

class CompileTest : public testing::TestWithParam<MeshCase> {};

TEST_P(CompileTest, CompilesToAPlanThatVerifies) {
  const LoadResult loaded = LoadMeshCase(GetParam());
  ASSERT_TRUE(loaded.ok) << RenderText(loaded.diagnostics, loaded.sources, false);
  const absl::StatusOr<Plan> plan = CompilePlan(loaded.spec);
  ASSERT_TRUE(plan.ok()) << plan.status().ToString();
  const VerifyResult result = VerifyPlan(*plan);
  for (const Violation& violation : result.violations) {
    ADD_FAILURE() << violation.rule << ": " << violation.message;
  }
  EXPECT_GT(result.certificate.instructions, 0);
}

INSTANTIATE_TEST_SUITE_P(Meshes, CompileTest, testing::ValuesIn(AllMeshCases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace planc
