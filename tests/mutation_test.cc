// Spoils valid plans in thousands of ways and looks at what the verifier says. No kind of mutation
// is granted survival: each survivor must be free of races and deadlocks to the happens-before
// checker, so that every interleaving gives what one gives, and then trains on all of its ranks,
// with the runtime's kernels, to the results of the right plan.
#include <map>

#include "absl/strings/str_format.h"
#include "compiler/pipeline.h"
#include "gtest/gtest.h"
#include "schemas/verify.h"
#include "tests/happens_before.h"
#include "tests/mesh_cases.h"
#include "tests/mesh_run.h"
#include "tests/mutations.h"
#include "tests/same_training.h"

namespace planc {
namespace {

constexpr int kTriesPerCase = 4;
constexpr int kSteps = 2;

struct Count {
  int tried = 0;
  int refused = 0;
  int same_operations = 0;  // survived: every rank does the same, and nothing races
  int same_bits = 0;        // survived, and trains to the same results bit for bit
  int rounding = 0;         // survived, and trains to the same results but for the order of sums
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
      const std::vector<Violation> violations = VerifyPlan(mutant).violations;
      const OrderFindings findings =
          Compare(mutant, violations, mesh_case.name + ", " + kind.name + ": " + mutated.text);
      if (!violations.empty()) {
        ++count.refused;
      } else if (findings.operations == right_operations_ && Tables(mutant) == right_tables_) {
        ++count.same_operations;
      } else {
        Justify(mutant, mesh_case.name + ", " + kind.name + ": " + mutated.text, count);
      }
    }
  }

  // Everything of a plan but its programs, whose operations are compared as the ranks do them.
  static std::string Tables(Plan plan) {
    plan.blocks.clear();
    plan.groups.clear();
    plan.events.clear();
    for (RankClass& rank_class : plan.classes) rank_class.programs = {};
    const absl::StatusOr<std::string> bytes = SerializePlan(plan);
    EXPECT_TRUE(bytes.ok()) << bytes.status().ToString();
    return bytes.value_or("");
  }

  // A survivor trains as the right plan does.
  void Justify(const Plan& mutant, const std::string& text, Count& count) {
    std::string difference;
    switch (CompareRuns(RunMesh(mutant, kSteps), right_, &difference)) {
      case Sameness::kBits:
        ++count.same_bits;
        return;
      case Sameness::kRounding:
        ++count.rounding;
        return;
      case Sameness::kDifferent:
        ADD_FAILURE() << "accepted: " << text << ": another " << difference;
    }
  }

  // Verifier and happens-before checker agree.
  OrderFindings Compare(const Plan& mutant, const std::vector<Violation>& violations,
                        const std::string& text) {
    const OrderFindings findings = CheckHappensBefore(mutant);
    if (violations.empty()) {
      EXPECT_EQ(findings.malformed, "") << "accepted: " << text;
      EXPECT_EQ(findings.race, "") << "accepted: " << text;
      EXPECT_EQ(findings.stuck, "") << "accepted: " << text;
      return findings;
    }
    const std::string& rule = violations[0].rule;
    if (rule == "order") {
      EXPECT_NE(findings.race, "") << violations[0].message << ": " << text;
    }
    if (rule == "deadlock") {
      EXPECT_NE(findings.stuck, "") << violations[0].message << ": " << text;
    }
    return findings;
  }

  // At least `least` mutants are tried.
  void RunKinds(const std::vector<MutationKind>& kinds, int least) {
    for (const MeshCase& mesh_case : AllMeshCases()) {
      const LoadResult loaded = LoadMeshCase(mesh_case);
      ASSERT_TRUE(loaded.ok) << mesh_case.name;
      const absl::StatusOr<Plan> plan = CompilePlan(loaded.spec);
      ASSERT_TRUE(plan.ok()) << mesh_case.name << ": " << plan.status().ToString();
      ASSERT_TRUE(VerifyPlan(*plan).violations.empty()) << mesh_case.name;
      const OrderFindings right = CheckHappensBefore(*plan);
      EXPECT_EQ(right.malformed + right.race + right.stuck, "") << mesh_case.name;
      right_operations_ = right.operations;
      right_tables_ = Tables(*plan);
      right_ = RunMesh(*plan, kSteps);
      ASSERT_TRUE(right_.errors.empty()) << mesh_case.name << ": " << right_.errors.front();
      for (const MutationKind& kind : kinds) Try(kind, mesh_case, *plan);
    }
    int tried = 0;
    for (const MutationKind& kind : kinds) {
      Judge(kind);
      tried += counts_[kind.name].tried;
    }
    EXPECT_GE(tried, least);
    EXPECT_GE(AllMeshCases().size(), 50u);
  }

  void Judge(const MutationKind& kind) {
    const Count& count = counts_[kind.name];
    absl::PrintF("%-26s %5d tried %5d refused %4d same operations %4d same bits %4d rounding\n",
                 kind.name, count.tried, count.refused, count.same_operations, count.same_bits,
                 count.rounding);
    EXPECT_GT(count.tried, 0) << kind.name;
    EXPECT_GT(count.refused, 0) << kind.name << " is never refused";
  }

  // Of the plan that is spoiled.
  std::string right_operations_;
  std::string right_tables_;
  MeshRun right_;
  std::map<std::string, Count> counts_;
};

// Together more than 10,000.
TEST_F(MutationTest, Instructions) { RunKinds(InstructionMutations(), 2700); }
TEST_F(MutationTest, Operands) { RunKinds(OperandMutations(), 2100); }
TEST_F(MutationTest, Programs) { RunKinds(ProgramMutations(), 2100); }
TEST_F(MutationTest, Tables) { RunKinds(TableMutations(), 3200); }
TEST_F(MutationTest, Contents) { RunKinds(ContentMutations(), 1700); }

}  // namespace
}  // namespace planc
