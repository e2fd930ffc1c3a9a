// Spoils valid plans in thousands of ways and looks at what the verifier says. Each kind of
// mutation must always be refused, or states why a plan can survive it.
#include <map>

#include "absl/strings/str_format.h"
#include "compiler/pipeline.h"
#include "gtest/gtest.h"
#include "schemas/verify.h"
#include "tests/mesh_cases.h"
#include "tests/mutations.h"

namespace planc {
namespace {

constexpr int kTriesPerCase = 3;

struct Count {
  int tried = 0;
  int refused = 0;
  int harmless = 0;  // known to be, and survived
  std::vector<std::string> survivors;
};

uint64_t Seed(const std::string& mesh_case, const std::string& kind, int attempt) {
  uint64_t hash = 1469598103934665603u;
  for (char c : mesh_case + "/" + kind) hash = (hash ^ static_cast<uint8_t>(c)) * 1099511628211u;
  return hash + static_cast<uint64_t>(attempt);
}

class MutationTest : public testing::Test {
 protected:
  void Try(const MutationKind& kind, const MeshCase& mesh_case, const Plan& plan) {
    Count& count = counts_[kind.name];
    for (int attempt = 0; attempt < kTriesPerCase; ++attempt) {
      Choice choice(Seed(mesh_case.name, kind.name, attempt));
      Plan mutant = plan;
      const Mutated mutated = kind.apply(mutant, choice);
      if (!mutated.applied) continue;
      ++count.tried;
      if (!VerifyPlan(mutant).violations.empty()) {
        ++count.refused;
      } else if (mutated.harmless) {
        ++count.harmless;
      } else {
        count.survivors.push_back(absl::StrFormat("%s: %s", mesh_case.name, mutated.text));
      }
    }
  }

  void RunKinds(const std::vector<MutationKind>& kinds) {
    for (const MeshCase& mesh_case : AllMeshCases()) {
      const LoadResult loaded = LoadMeshCase(mesh_case);
      ASSERT_TRUE(loaded.ok) << mesh_case.name;
      const absl::StatusOr<Plan> plan = CompilePlan(loaded.spec);
      ASSERT_TRUE(plan.ok()) << mesh_case.name << ": " << plan.status().ToString();
      ASSERT_TRUE(VerifyPlan(*plan).violations.empty()) << mesh_case.name;
      for (const MutationKind& kind : kinds) Try(kind, mesh_case, *plan);
    }
    for (const MutationKind& kind : kinds) Judge(kind);
  }

  void Judge(const MutationKind& kind) {
    const Count& count = counts_[kind.name];
    absl::PrintF("%-26s %5d tried %5d refused (%5.1f%%) %4d harmless %4d survived\n", kind.name,
                 count.tried, count.refused,
                 count.tried == 0 ? 0.0 : 100.0 * count.refused / count.tried, count.harmless,
                 static_cast<int>(count.survivors.size()));
    if (kind.survives_because != nullptr && !count.survivors.empty()) {
      absl::PrintF("    may survive: %s\n", kind.survives_because);
    }
    for (const std::string& survivor : count.survivors) {
      if (kind.survives_because == nullptr) {
        ADD_FAILURE() << kind.name << " survived: " << survivor;
      } else {
        absl::PrintF("    %s\n", survivor);
      }
    }
    EXPECT_GT(count.tried, 0) << kind.name;
    EXPECT_GT(count.refused, 0) << kind.name << " is never refused";
  }

  std::map<std::string, Count> counts_;
};

TEST_F(MutationTest, Instructions) { RunKinds(InstructionMutations()); }
TEST_F(MutationTest, Operands) { RunKinds(OperandMutations()); }
TEST_F(MutationTest, Programs) { RunKinds(ProgramMutations()); }
TEST_F(MutationTest, Tables) { RunKinds(TableMutations()); }

}  // namespace
}  // namespace planc
