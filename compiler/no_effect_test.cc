// Keys of compiler/spec/effects.def: where a job is told that a key changes nothing, its plan is
// the same with another value; where the key counts, nothing is said.
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/pipeline.h"
#include "compiler/spec/load_job.h"
#include "gtest/gtest.h"

namespace planc {
namespace {

struct EffectCase {
  const char* key;
  const char* value;
  const char* other;
  std::vector<std::string> in_vain;  // settings with which the key changes nothing
  std::vector<std::string> counts;   // settings with which it does
};

const EffectCase kCases[] = {
    {"model.rope_theta",
     "50000",
     "20000",
     {"model.family=gpt2", "model.kv_heads=4"},
     {"model.family=qwen2"}},
    {"parallelism.context.method", "ulysses", "allgather", {}, {}},
    {"parallelism.prefetch", "2", "0", {"parallelism.zero=2"}, {"parallelism.zero=3"}},
    {"lr_schedule.min_ratio",
     "0.2",
     "0.3",
     {"lr_schedule.decay=constant"},
     {"lr_schedule.decay=linear"}},
    {"data.token_bytes", "4", "2", {"data.format=bytes"}, {"data.format=tokens"}},
    {"run.eval_batches", "2", "3", {}, {"data.validation=[b.bin]"}},
    {"checkpoint.allow_changes",
     "[optimizer.lr]",
     "[run]",
     {"checkpoint.resume=never"},
     {"checkpoint.resume=auto"}},
};

const char* const kRows[] = {
#define PLANC_EFFECT(key, ...) key,
#include "compiler/spec/effects.def"
#undef PLANC_EFFECT
};

LoadResult Load(const EffectCase& effect, std::vector<std::string> sets, const char* value) {
  if (value != nullptr) sets.push_back(absl::StrCat(effect.key, "=", value));
  const std::string text = R"(job: sample
model: {family: llama, layers: 2, hidden: 64, heads: 4, ffn_hidden: 128, vocab: 256}
cluster: {gpus_per_node: 2, device: host}
mesh: {dp_shard: 2}
batch: {global: 8, sequence: 32}
optimizer: {lr: 1e-3}
data: {train: [a.bin]}
run: {steps: 10}
)";
  return LoadJobText("job.yaml", {{"job.yaml", text}}, sets);
}

int Warnings(const LoadResult& loaded) {
  int count = 0;
  for (const Diagnostic& diagnostic : loaded.diagnostics.entries()) {
    count += diagnostic.code == DiagnosticCode::kNoEffect ? 1 : 0;
  }
  return count;
}

// What the ranks do, without the job that it is for.
std::string ProgramOf(const LoadResult& loaded) {
  absl::StatusOr<Plan> plan = CompilePlan(loaded.spec);
  EXPECT_TRUE(plan.ok()) << plan.status();
  plan->job.Clear();
  return PlanText(*plan);
}

TEST(NoEffectTest, EveryRowHasACase) {
  std::set<std::string> rows(std::begin(kRows), std::end(kRows));
  for (const EffectCase& effect : kCases) {
    EXPECT_EQ(rows.erase(effect.key), 1u) << effect.key << " has no row";
  }
  for (const std::string& row : rows) ADD_FAILURE() << row << " has no case";
}

TEST(NoEffectTest, WrittenInVainIsToldAndChangesNothing) {
  for (const EffectCase& effect : kCases) {
    const LoadResult loaded = Load(effect, effect.in_vain, effect.value);
    ASSERT_TRUE(loaded.ok) << effect.key;
    EXPECT_EQ(Warnings(loaded), 1) << effect.key;
    EXPECT_EQ(Warnings(Load(effect, effect.in_vain, nullptr)), 0) << effect.key << " is a default";
    EXPECT_EQ(ProgramOf(loaded), ProgramOf(Load(effect, effect.in_vain, effect.other)))
        << effect.key << " changes the plan";
  }
}

TEST(NoEffectTest, NothingIsSaidWhereTheKeyCounts) {
  for (const EffectCase& effect : kCases) {
    // Context parallelism does not run in this version, so its method never counts.
    if (std::string(effect.key) == "parallelism.context.method") continue;
    const LoadResult loaded = Load(effect, effect.counts, effect.value);
    EXPECT_TRUE(loaded.ok) << effect.key;
    EXPECT_EQ(Warnings(loaded), 0) << effect.key;
  }
}

}  // namespace
}  // namespace planc
