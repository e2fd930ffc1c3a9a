// Spoils valid plans in thousands of ways and looks at what the verifier says. No kind of mutation
// is granted survival: each survivor must be free of races and deadlocks to the happens-before
// checker, so that every interleaving gives what one gives, and then trains on all of its ranks,
// with the runtime's kernels, to the results of the right plan; or it is the plan of another job.
//
// Each test prints its part of the tables in docs/mutation_test.md.
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "gtest/gtest.h"
#include "tests/mutation/mutant_judge.h"
#include "tests/mutation/mutation_plans.h"
#include "tests/mutation/mutations.h"
#include "tests/mutation/plan_fields.h"

namespace planc {
namespace {

// Each field is tried on one plan of so many.
constexpr size_t kPlansPerField = 5;
constexpr int kTriesPerField = 2;

uint64_t Seed(const std::string& mesh_case, const std::string& kind, int attempt) {
  uint64_t hash = 1469598103934665603u;
  for (char c : mesh_case + "/" + kind) hash = (hash ^ static_cast<uint8_t>(c)) * 1099511628211u;
  return hash + static_cast<uint64_t>(attempt);
}

void PrintRow(const std::string& name, const Count& count) {
  absl::PrintF("| %s | %d | %d | %d | %d | %d | %d | %d | %d |\n", name, count.tried, count.refused,
               count.same_operations, count.same_bits, count.rounding, count.other_job,
               count.expanded, count.disordered);
}

class MutationTest : public testing::Test {
 protected:
  // Tries each kind `tries` times on each plan. At least `least` mutants come of it, and of each
  // kind some are refused.
  void RunKinds(const std::vector<MutationKind>& kinds, int tries, int least) {
    for (const MeshCase& mesh_case : MutationCases()) {
      const Plan plan = CompileMeshCase(mesh_case);
      MutantJudge judge(mesh_case.name, plan);
      for (const MutationKind& kind : kinds) {
        for (int attempt = 0; attempt < tries; ++attempt) {
          Choice choice(Seed(mesh_case.name, kind.name, attempt));
          Plan mutant = plan;
          const Mutated mutated = kind.apply(mutant, choice);
          if (!mutated.applied) continue;
          judge.Look(mutant, absl::StrCat(kind.name, ": ", mutated.text), &counts_[kind.name]);
        }
      }
    }
    std::vector<std::string> names;
    for (const MutationKind& kind : kinds) names.emplace_back(kind.name);
    Conclude(names, least);
  }

  // The same for the fields of plan files that are in the job, or that are not.
  void RunFields(bool in_job, int least) {
    std::vector<const PlanField*> fields;
    for (const PlanField& field : AllPlanFields()) {
      if (field.in_job == in_job) fields.push_back(&field);
    }
    for (size_t c = 0; c < MutationCases().size(); ++c) {
      const MeshCase& mesh_case = MutationCases()[c];
      const Plan plan = CompileMeshCase(mesh_case);
      MutantJudge judge(mesh_case.name, plan);
      for (size_t f = c % kPlansPerField; f < fields.size(); f += kPlansPerField) {
        for (int attempt = 0; attempt < kTriesPerField; ++attempt) {
          const std::string& path = fields[f]->path;
          Choice choice(Seed(mesh_case.name, path, attempt));
          proto::Plan mutant = judge.image();
          const Mutated mutated = ChangeField(*fields[f], mutant, choice);
          if (mutated.applied) judge.LookAtFile(mutant, mutated.text, &counts_[path]);
        }
      }
    }
    std::vector<std::string> names;
    for (const PlanField* field : fields) names.push_back(field->path);
    Conclude(names, least);
  }

  void Conclude(const std::vector<std::string>& names, int least) {
    Count all;
    for (const std::string& name : names) {
      PrintRow(name, counts_[name]);
      EXPECT_GT(counts_[name].refused, 0) << name << " is never refused";
      all.Add(counts_[name]);
    }
    EXPECT_GE(all.tried, least);
    EXPECT_GE(MutationCases().size(), 77u);
    EXPECT_EQ(all.disordered_refused, all.disordered);
    PrintRow("**sum**", all);
    absl::PrintF(
        "order: %d of %d mutants race or never end, %d of these are refused; %d are "
        "refused for order or deadlock, and do race or never end\n",
        all.disordered, all.tried, all.disordered_refused, all.refused_for_order);
  }

  std::map<std::string, Count> counts_;
};

// Together far more than 10,000.
TEST_F(MutationTest, Instructions) { RunKinds(InstructionMutations(), 2, 1900); }
TEST_F(MutationTest, Operands) { RunKinds(OperandMutations(), 2, 1500); }
TEST_F(MutationTest, Programs) { RunKinds(ProgramMutations(), 2, 1500); }
TEST_F(MutationTest, Tables) { RunKinds(TableMutations(), 2, 2300); }
TEST_F(MutationTest, Contents) { RunKinds(ContentMutations(), 2, 1200); }
TEST_F(MutationTest, Events) { RunKinds(EventMutations(), 8, 2000); }
TEST_F(MutationTest, Uses) { RunKinds(UseMutations(), 2, 1100); }
TEST_F(MutationTest, PlanFields) { RunFields(false, 2300); }
TEST_F(MutationTest, JobFields) { RunFields(true, 3000); }

}  // namespace
}  // namespace planc
