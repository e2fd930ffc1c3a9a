// Any mesh, same training: every mesh of mesh_cases trains as one rank does, to rounding.
//
// Adam divides by the root of the second moment, so where a gradient is only rounding noise it
// turns the noise into a full step. The base job sets epsilon to 1e-5, above that noise and far
// below real gradients, so that the comparison of weights does not hang on it.
#include <cmath>

#include "gtest/gtest.h"
#include "tests/mesh_cases.h"
#include "tests/mesh_run.h"

namespace planc {
namespace {

constexpr int kSteps = 20;
constexpr int64_t kPageBytes = 4096;

// |a - b| / |b| in the Euclidean norm.
double RelativeDistance(const std::vector<float>& a, const std::vector<float>& b) {
  double difference = 0;
  double norm = 0;
  for (size_t i = 0; i < b.size(); ++i) {
    difference += (double{a[i]} - b[i]) * (double{a[i]} - b[i]);
    norm += double{b[i]} * b[i];
  }
  return norm == 0 ? std::sqrt(difference) : std::sqrt(difference / norm);
}

// Largest distance over all tensors; a test failure when the names differ.
double LargestDistance(const Tensors& a, const Tensors& b) {
  EXPECT_EQ(a.size(), b.size());
  double largest = 0;
  for (const auto& [name, tensor] : b) {
    const auto found = a.find(name);
    if (found == a.end() || found->second.size() != tensor.size()) {
      ADD_FAILURE() << name << " is missing or has another size";
      continue;
    }
    const double distance = RelativeDistance(found->second, tensor);
    // Key biases shift all logits of a row alike: their true gradient is 0, and noise has no
    // relative size.
    if (name.find("k.bias") != std::string::npos || name.find("k_proj.bias") != std::string::npos) {
      continue;
    }
    EXPECT_TRUE(std::isfinite(distance)) << name;
    largest = std::max(largest, distance);
  }
  return largest;
}

// The run of one rank that a case is compared with: same family, tying and nothing else.
const MeshRun& Reference(const MeshCase& mesh_case) {
  static auto* cache = new std::map<std::string, MeshRun>;
  MeshCase one{mesh_case.family, mesh_case.family, {}};
  for (const std::string& set : mesh_case.sets) {
    if (set.find("tie_embeddings") != std::string::npos) {
      one.sets.push_back(set);
      one.name += "_tied";
    }
  }
  auto [it, added] = cache->insert({one.name, {}});
  if (added) it->second = RunMesh(CompileMeshCase(one), kSteps);
  return it->second;
}

class MeshEquivalence : public testing::TestWithParam<MeshCase> {};

TEST_P(MeshEquivalence, TrainsAsOneRankDoes) {
  const MeshRun& one = Reference(GetParam());
  ASSERT_TRUE(one.errors.empty()) << one.errors.front();
  const Plan plan = CompileMeshCase(GetParam());
  const MeshRun run = RunMesh(plan, kSteps);
  ASSERT_TRUE(run.errors.empty()) << run.errors.front();

  double loss_distance = std::abs(run.eval_loss - one.eval_loss) / one.eval_loss;
  for (int step = 0; step < kSteps; ++step) {
    loss_distance =
        std::max(loss_distance, std::abs(run.losses[step] - one.losses[step]) / one.losses[step]);
  }
  const double gradient_distance = LargestDistance(run.first_gradients, one.first_gradients);
  const double weight_distance = LargestDistance(run.weights, one.weights);
  std::printf("%-36s loss %.1e  first gradients %.1e  weights %.1e\n", GetParam().name.c_str(),
              loss_distance, gradient_distance, weight_distance);
  EXPECT_LT(run.losses.back(), run.losses.front()) << "nothing was learned";
  EXPECT_EQ(run.initial_weights, one.initial_weights);
  EXPECT_LT(loss_distance, 1e-5);
  EXPECT_LT(gradient_distance, 1e-5);
  EXPECT_LT(weight_distance, 1e-4);

  for (int64_t rank = 0; rank < plan.mesh.WorldSize(); ++rank) {
    const int64_t stage = plan.mesh.CoordinatesOf(rank)[static_cast<int>(Axis::kPp)];
    for (int kind = 0; kind < kMemoryKindCount; ++kind) {
      const int64_t pages = (plan.classes[stage].arena_bytes[kind] + kPageBytes - 1) / kPageBytes;
      EXPECT_EQ(run.memory[rank][kind].mapped_bytes, pages * kPageBytes)
          << "rank " << rank << ", memory kind " << kind;
    }
  }
  if (AllocationsAreCounted()) {
    EXPECT_EQ(run.allocations.step.sum(), 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Meshes, MeshEquivalence, testing::ValuesIn(AllMeshCases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace planc
