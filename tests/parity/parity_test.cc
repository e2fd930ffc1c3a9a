// One step of training, by planc and by an independent PyTorch program in float64
// (transformer.py): losses, gradients, their norm, and the weights after AdamW. The fixtures hold
// random weights and PyTorch's results. leave_out_test.cc shows what this comparison sees.
//
//   parity_test --write=DIR   writes what a fixture consists of; make_fixtures.py then replaces the
//                             weights and adds what PyTorch computes from them
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "runtime/checkpoint/checkpoint_directory.h"
#include "runtime/checkpoint/file_system.h"
#include "runtime/checkpoint/huggingface/export.h"
#include "tests/huggingface/folder_files.h"
#include "tests/mesh_run.h"
#include "tests/parity/compare.h"
#include "tests/parity/parity_case.h"

namespace planc {
namespace {

class Parity : public testing::TestWithParam<ParityCase> {};

TEST_P(Parity, LossesGradientsAndUpdatesAgreeWithPyTorch) {
  const ParityCase& one = GetParam();
  const std::string checkpoint = absl::StrCat(testing::TempDir(), "/", ParityCaseName(one));
  const Plan plan = CompileParityCase(one, {absl::StrCat("checkpoint.resume=", checkpoint)});
  ASSERT_NO_FATAL_FAILURE(ImportFixture(one, plan, checkpoint));
  const MeshRun run = RunParityCase(one, plan);
  ASSERT_TRUE(run.errors.empty()) << run.errors.front();

  const ParityReference reference = ReadParityReference(one.family);
  // Clipping has something to do.
  ASSERT_GT(reference.grad_norm, 2 * ParityOptimizer().clip_norm);
  ASSERT_EQ(run.token_losses.empty(), !one.mesh.empty());
  const Distances off = DistancesBetween(run, reference);
  const Distances bounds = BoundsOf(one, reference);
  EXPECT_LT(off.loss, bounds.loss);
  EXPECT_LT(off.token_losses, bounds.token_losses);
  EXPECT_LT(off.grad_norm, bounds.grad_norm);
  EXPECT_LT(off.clipped_norm, bounds.clipped_norm);
  EXPECT_LT(off.gradients.distance, bounds.gradients.distance) << off.gradients.tensor;
  EXPECT_LT(off.updates.distance, bounds.updates.distance) << off.updates.tensor;
  std::printf(
      "off: loss %.1e of %.1e, tokens %.1e of %.1e, norm %.1e of %.1e, clipped norm %.1e of "
      "%.1e,\n  gradients %.1e of %.1e (%s), updates %.1e of %.1e (%s)\n",
      off.loss, bounds.loss, off.token_losses, bounds.token_losses, off.grad_norm, bounds.grad_norm,
      off.clipped_norm, bounds.clipped_norm, off.gradients.distance, bounds.gradients.distance,
      off.gradients.tensor.c_str(), off.updates.distance, bounds.updates.distance,
      off.updates.tensor.c_str());
}

// The changes that runs are compared with are those of torch.optim.AdamW.
TEST(ParityReference, ChangesAreTorchs) {
  for (const std::string& family : ParityFamilies()) {
    const ParityReference reference = ReadParityReference(family);
    double squares = 0;
    double along_weights = 0;
    for (const auto& [name, changes] : ExpectedChanges(reference)) {
      for (size_t i = 0; i < changes.size(); ++i) {
        squares += double{changes[i]} * changes[i];
        along_weights += double{changes[i]} * reference.weights.at(name)[i];
      }
    }
    EXPECT_NEAR(std::sqrt(squares), reference.update_norm, 2e-6 * reference.update_norm);
    EXPECT_NEAR(along_weights, reference.update_along_weights,
                2e-6 * std::abs(reference.update_along_weights));
  }
}

INSTANTIATE_TEST_SUITE_P(Models, Parity, testing::ValuesIn(ParityCases()),
                         [](const auto& info) { return ParityCaseName(info.param); });

// Exports a model of every family.
int WriteFixtures(const std::string& directory) {
  constexpr int kSteps = 1;
  for (const std::string& family : ParityFamilies()) {
    const std::string work = absl::StrCat(directory, "/", family, ".work");
    const std::string folder = absl::StrCat(directory, "/", family);
    const Plan plan = CompileParityCase({family, "fp32", "one_rank", {}}, {});
    const MeshRun run = RunMesh(plan, kSteps, work);
    if (!run.errors.empty()) {
      std::fprintf(stderr, "%s\n", run.errors.front().c_str());
      return 1;
    }
    std::filesystem::remove_all(folder);
    const auto exported =
        ExportFolder(absl::StrCat(work, "/", CheckpointName(kSteps)), folder, {}, HostFileSystem());
    if (!exported.ok()) {
      std::fprintf(stderr, "%s\n", exported.status().ToString().c_str());
      return 1;
    }
    nlohmann::json batch;
    for (int64_t sequence = 0; sequence < plan.job.batch().global(); ++sequence) {
      nlohmann::json tokens;
      nlohmann::json targets;
      for (int64_t position = 0; position < plan.job.batch().sequence(); ++position) {
        tokens.push_back(PatternToken(0, sequence, position));
        targets.push_back(PatternToken(0, sequence, position + 1));
      }
      batch["tokens"].push_back(tokens);
      batch["targets"].push_back(targets);
    }
    WriteText(folder + "/tokens.json", batch.dump() + "\n");
    std::filesystem::remove_all(work);
  }
  return 0;
}

}  // namespace
}  // namespace planc

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const std::string flag = argc == 2 ? argv[1] : "";
  if (absl::StartsWith(flag, "--write=")) {
    return planc::WriteFixtures(flag.substr(std::string("--write=").size()));
  }
  return RUN_ALL_TESTS();
}
