// planc plan, diff and where, from job file to output and exit code.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "planc/commands.h"
#include "planc/load_plan.h"
#include "planc/text.h"
#include "schemas/plan_io.h"

namespace planc {
namespace {

constexpr char kJob[] = R"(job: tiny
model:
  family: llama
  layers: 4
  hidden: 64
  heads: 4
  kv_heads: 2
  ffn_hidden: 128
  vocab: 256
cluster: {nodes: 1, gpus_per_node: 4, device: host}
mesh: {dp_shard: 2, tp: 2}
parallelism: {zero: 2, sequence_parallel: true}
batch: {global: 8, micro: 1, sequence: 64}
precision: {compute: fp32}
optimizer: {lr: 1e-3}
data: {train: [train.txt], format: bytes}
run: {steps: 10}
)";

struct Result {
  int code = 0;
  std::string out;
  std::string err;
};

using Command = int (*)(const std::vector<std::string>&, std::ostream&, std::ostream&);

Result Invoke(Command command, const std::vector<std::string>& args) {
  std::ostringstream out;
  std::ostringstream err;
  const int code = command(args, out, err);
  return {code, out.str(), err.str()};
}

std::string Path(const std::string& name) { return testing::TempDir() + "/" + name; }

class PlanCommandTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(WriteFile(job_, kJob).ok()); }
  const std::string job_ = Path("tiny.yaml");
};

bool Has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_F(PlanCommandTest, PrintsTheDefaultSections) {
  const Result result = Invoke(RunPlan, {job_});
  ASSERT_EQ(result.code, kExitOk) << result.err;
  for (const char* part : {"summary\n", "mesh\n", "memory\n", "comm\n", "not modelled\n"}) {
    EXPECT_TRUE(Has(result.out, part)) << part;
  }
  EXPECT_FALSE(Has(result.out, "\x1b["));
  std::istringstream lines(result.out);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(line.size(), size_t{kColumns}) << line;
  }
}

TEST_F(PlanCommandTest, PlanFileShowsWhatTheJobShows) {
  const std::string file = Path("tiny.plan");
  const Result job = Invoke(RunPlan, {job_, "-o", file, "--show=program"});
  ASSERT_EQ(job.code, kExitOk) << job.err;
  EXPECT_EQ(Invoke(RunPlan, {file, "--show=program"}).out, job.out);
  EXPECT_EQ(Invoke(RunDiff, {job_, file}).code, kExitOk);
  // A second compilation writes the same bytes.
  const std::string again = Path("again.plan");
  ASSERT_EQ(Invoke(RunPlan, {job_, "-o", again}).code, kExitOk);
  EXPECT_EQ(*ReadFile(again), *ReadFile(file));
}

TEST_F(PlanCommandTest, RefusesDamagedPlanFilesAndOverridesOfThem) {
  const std::string file = Path("damaged.plan");
  ASSERT_EQ(Invoke(RunPlan, {job_, "-o", file}).code, kExitOk);
  const Result overridden = Invoke(RunPlan, {file, "--set", "run.steps=5"});
  EXPECT_EQ(overridden.code, kExitJobError);
  EXPECT_TRUE(Has(overridden.err, "--set needs the job file")) << overridden.err;
  std::string bytes = *ReadFile(file);
  bytes.back() ^= 1;
  ASSERT_TRUE(WriteFile(file, bytes).ok());
  const Result damaged = Invoke(RunPlan, {file});
  EXPECT_EQ(damaged.code, kExitJobError);
  EXPECT_TRUE(Has(damaged.err, "PL0402")) << damaged.err;
}

TEST_F(PlanCommandTest, UnsafePlanFileIsRefused) {
  const std::string file = Path("unsafe.plan");
  ASSERT_EQ(Invoke(RunPlan, {job_, "-o", file}).code, kExitOk);
  absl::StatusOr<Plan> plan = ParsePlan(*ReadFile(file));
  ASSERT_TRUE(plan.ok());
  // Nothing reduces or updates any more.
  plan->classes[0].programs[static_cast<int>(ProgramKind::kStep)].steps.pop_back();
  ASSERT_TRUE(WriteFile(file, *SerializePlan(*plan)).ok());
  const Result result = Invoke(RunPlan, {file});
  EXPECT_EQ(result.code, kExitUnsafePlan);
  EXPECT_TRUE(Has(result.err, "error[PL0401]: the plan is not safe")) << result.err;
  EXPECT_EQ(result.out, "");
}

TEST_F(PlanCommandTest, DoesNotFitNamesTheCheapestChanges) {
  const Result result = Invoke(RunPlan, {job_, "--set", "cluster.memory=1MiB"});
  EXPECT_EQ(result.code, kExitDoesNotFit);
  EXPECT_TRUE(Has(result.err, "PL0301")) << result.err;
  EXPECT_TRUE(Has(result.err, "activations")) << result.err;
  EXPECT_TRUE(Has(result.err, "cheapest changes")) << result.err;
  EXPECT_EQ(Invoke(RunPlan, {job_, "--set", "cluster.memory=1GiB"}).code, kExitOk);
}

TEST_F(PlanCommandTest, JobErrorsAreDiagnostics) {
  const Result result = Invoke(RunPlan, {job_, "--set", "mesh.tp=3"});
  EXPECT_EQ(result.code, kExitJobError);
  EXPECT_TRUE(Has(result.err, "PL0201")) << result.err;
  EXPECT_EQ(Invoke(RunPlan, {Path("absent.yaml")}).code, kExitJobError);
  EXPECT_TRUE(Has(Invoke(RunPlan, {job_, "--show=memry"}).err, "did you mean `memory`?"));
  EXPECT_TRUE(Has(Invoke(RunPlan, {job_, "--rank=4"}).err, "the plan has ranks 0 to 3"));
}

TEST_F(PlanCommandTest, MachineFormats) {
  const Result json = Invoke(RunPlan, {job_, "--format=json", "--show=memory,comm,mesh"});
  ASSERT_EQ(json.code, kExitOk) << json.err;
  const nlohmann::json parsed = nlohmann::json::parse(json.out);
  EXPECT_EQ(parsed["format"], "planc-show");
  EXPECT_EQ(parsed["sections"]["mesh"]["axes"]["tp"], 2);
  const nlohmann::json trace = nlohmann::json::parse(Invoke(RunPlan, {job_, "--format=trace"}).out);
  EXPECT_FALSE(trace["traceEvents"].empty());
  EXPECT_TRUE(Has(Invoke(RunPlan, {job_, "--format=html"}).out, "</svg>"));
}

TEST_F(PlanCommandTest, DiffMarksWhatChangesTheLossCurve) {
  const Result result = Invoke(RunDiff, {job_, job_, "--set", "optimizer.lr=2e-3", "--set",
                                         "mesh.dp_shard=1", "--set", "mesh.dp_replicate=2"});
  ASSERT_EQ(result.code, kExitDifferent) << result.err;
  EXPECT_TRUE(Has(result.out, "! optimizer.lr\n    - 0.001")) << result.out;
  EXPECT_TRUE(Has(result.out, "tiny.yaml:15)\n    + 0.002  (--set)\n")) << result.out;
  EXPECT_TRUE(Has(result.out, "  mesh.dp_shard\n")) << result.out;
  EXPECT_FALSE(Has(result.out, "! mesh.dp_shard")) << result.out;
  EXPECT_TRUE(Has(result.out, "memory of the fullest rank")) << result.out;
  EXPECT_TRUE(Has(result.out, "communication of one step")) << result.out;
  EXPECT_EQ(Invoke(RunDiff, {job_, job_}).code, kExitOk);
}

TEST_F(PlanCommandTest, WhereListsEveryShardOnce) {
  const std::string name = "model.layers.3.mlp.down_proj.weight";
  const Result text = Invoke(RunWhere, {job_, name});
  ASSERT_EQ(text.code, kExitOk) << text.err;
  EXPECT_TRUE(Has(text.out, "shape [64, 128], dimension 1 split over tp")) << text.out;
  EXPECT_TRUE(Has(text.out, "1. reduce_scatter over dp_shard, 2 ranks")) << text.out;
  const nlohmann::json json =
      nlohmann::json::parse(Invoke(RunWhere, {job_, name, "--format=json"}).out);
  ASSERT_EQ(json["shards"].size(), 4u);
  // The two dp_shard ranks of each tp rank hold its 64 x 64 part between them.
  std::vector<int64_t> elements(2, 0);
  for (const nlohmann::json& shard : json["shards"]) {
    const int64_t tp = shard["rank"].get<int64_t>() % 2;
    EXPECT_EQ(shard["box_begin"], (std::vector<int64_t>{0, 64 * tp}));
    EXPECT_EQ(shard["box_end"], (std::vector<int64_t>{64, 64 * tp + 64}));
    elements[tp] +=
        shard["master_elements"][1].get<int64_t>() - shard["master_elements"][0].get<int64_t>();
  }
  EXPECT_EQ(elements, (std::vector<int64_t>{64 * 64, 64 * 64}));
}

TEST_F(PlanCommandTest, WhereSuggestsTheNearestName) {
  const Result result = Invoke(RunWhere, {job_, "model.layers.3.mlp.down_prj.weight"});
  EXPECT_EQ(result.code, kExitJobError);
  EXPECT_TRUE(Has(result.err, "`model.layers.3.mlp.down_proj.weight`?")) << result.err;
}

}  // namespace
}  // namespace planc
