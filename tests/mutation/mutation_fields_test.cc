// Every field of plan files has a mutation that changes it, and is in the table of
// mutated_fields.def with all others that do; that they do is measured.
#include <map>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "schemas/plan_io.h"
#include "tests/mutation/mutation_plans.h"
#include "tests/mutation/mutations.h"
#include "tests/mutation/plan_fields.h"

namespace planc {
namespace {

struct Row {
  const char* path;
  const char* kinds;  // separated by commas
};

constexpr Row kRows[] = {
#define PLANC_MUTATED_FIELD(path, kinds) {path, kinds},
#include "tests/mutation/mutated_fields.def"
#undef PLANC_MUTATED_FIELD
};

constexpr int kTries = 12;
// The kind that each field has: ChangeField.
constexpr char kOwn[] = "its own";

std::set<std::string> KindsOf(const Row& row) {
  return absl::StrSplit(row.kinds, ", ", absl::SkipEmpty());
}

std::vector<MutationKind> AllKinds() {
  std::vector<MutationKind> all;
  for (const auto& kinds :
       {InstructionMutations(), OperandMutations(), ProgramMutations(), TableMutations(),
        ContentMutations(), EventMutations(), UseMutations()}) {
    all.insert(all.end(), kinds.begin(), kinds.end());
  }
  return all;
}

bool IsWithin(const std::string& path, const std::string& message) {
  return path == message || absl::StartsWith(path, message + ".");
}

// Kinds by the fields that they were seen to change.
std::map<std::string, std::set<std::string>> Observe() {
  std::map<std::string, std::set<std::string>> seen;
  for (const MeshCase& mesh_case : MutationCases()) {
    // One with transfers, all kinds of groups, recomputation and moments; one with snapshots.
    if (mesh_case.name != "llama_pp2_ds2_z1_tp2" && mesh_case.name != "bf16_async") continue;
    const Plan plan = CompileMeshCase(mesh_case);
    const proto::Plan image = PlanToProto(plan);
    for (const MutationKind& kind : AllKinds()) {
      for (int attempt = 0; attempt < kTries; ++attempt) {
        Choice choice(static_cast<uint64_t>(attempt));
        Plan mutant = plan;
        if (!kind.apply(mutant, choice).applied) continue;
        for (const std::string& path : FieldsThatDiffer(image, PlanToProto(mutant))) {
          seen[path].insert(kind.name);
        }
      }
    }
    for (const PlanField& field : AllPlanFields()) {
      for (int attempt = 0; attempt < kTries; ++attempt) {
        Choice choice(static_cast<uint64_t>(attempt));
        proto::Plan mutant = image;
        if (!ChangeField(field, mutant, choice).applied) continue;
        for (const std::string& path : FieldsThatDiffer(image, mutant)) {
          if (IsWithin(path, field.path) || IsWithin(field.path, path))
            seen[field.path].insert(kOwn);
        }
      }
    }
  }
  return seen;
}

TEST(MutationFieldsTest, EveryFieldHasAMutationThatChangesIt) {
  std::map<std::string, std::set<std::string>> seen = Observe();
  std::set<std::string> rows;
  for (const Row& row : kRows) {
    EXPECT_TRUE(rows.insert(row.path).second) << row.path << " has two rows";
    for (const std::string& kind : KindsOf(row)) {
      EXPECT_EQ(seen[row.path].count(kind), 1u) << kind << " does not change " << row.path;
    }
  }
  for (const PlanField& field : AllPlanFields()) {
    EXPECT_EQ(seen[field.path].count(kOwn), 1u) << "nothing changes " << field.path;
    if (field.in_job) continue;
    EXPECT_EQ(rows.erase(field.path), 1u)
        << "no row: PLANC_MUTATED_FIELD(\"" << field.path << "\", \""
        << absl::StrJoin(seen[field.path], ", ") << "\")";
  }
  for (const std::string& path : rows) ADD_FAILURE() << "no field " << path;
}

}  // namespace
}  // namespace planc
