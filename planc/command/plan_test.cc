// planc plan, diff and where, from job file to output and exit code.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <regex>
#include <sstream>
#include <string>
#include <utility>
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

TEST_F(PlanCommandTest, TheJobInsideAPlanFileIsChecked) {
  const std::string file = Path("job.plan");
  ASSERT_EQ(Invoke(RunPlan, {job_, "-o", file}).code, kExitOk);
  const absl::StatusOr<Plan> good = ParsePlan(*ReadFile(file));
  ASSERT_TRUE(good.ok());
  const std::pair<const char*, void (*)(proto::Job&)> edits[] = {
      {"the required key batch.global is missing", [](proto::Job& job) { job.clear_batch(); }},
      {"optimizer.betas", [](proto::Job& job) { job.mutable_optimizer()->clear_betas(); }},
      {"optimizer.lr", [](proto::Job& job) { job.mutable_optimizer()->set_lr(std::nan("")); }},
      {"run.steps must be >= 1", [](proto::Job& job) { job.mutable_run()->set_steps(0); }},
      {"checkpoint.keep must be >= 1", [](proto::Job& j) { j.mutable_checkpoint()->set_keep(-1); }},
  };
  for (const auto& [text, edit] : edits) {
    Plan plan = *good;
    edit(plan.job);
    ASSERT_TRUE(WriteFile(file, *SerializePlan(plan)).ok());
    const Result result = Invoke(RunPlan, {file});
    EXPECT_EQ(result.code, kExitJobError) << text;
    EXPECT_TRUE(Has(result.err, "error[PL0402]:")) << result.err;
    EXPECT_TRUE(Has(result.err, "the job inside the plan")) << result.err;
    EXPECT_TRUE(Has(result.err, text)) << result.err;
    EXPECT_EQ(result.out, "");
  }
}

TEST_F(PlanCommandTest, DoesNotFitNamesTheCheapestChanges) {
  const Result result = Invoke(RunPlan, {job_, "--set", "cluster.memory=1MiB"});
  EXPECT_EQ(result.code, kExitDoesNotFit);
  EXPECT_TRUE(Has(result.err, "PL0301")) << result.err;
  EXPECT_TRUE(Has(result.err, "activations")) << result.err;
  EXPECT_TRUE(Has(result.err, "cheapest changes")) << result.err;
  EXPECT_EQ(Invoke(RunPlan, {job_, "--set", "cluster.memory=1GiB"}).code, kExitOk);
}

// A step of this job takes days of one core.
TEST_F(PlanCommandTest, AStallTimeoutBelowThePredictionIsRefused) {
  const std::vector<std::string> heavy = {job_,
                                          "--set",
                                          "batch.sequence=1048576",
                                          "--set",
                                          "model.max_sequence=1048576",
                                          "--set",
                                          "run.stall_timeout=1s"};
  const Result refused = Invoke(RunPlan, heavy);
  EXPECT_EQ(refused.code, kExitJobError) << refused.err;
  EXPECT_TRUE(Has(refused.err, "error[PL0302]: run.stall_timeout is 1.00 s")) << refused.err;
  const Result set = Invoke(RunPlan, {job_, "--set", "run.stall_timeout=600s"});
  EXPECT_EQ(set.code, kExitOk) << set.err;
  EXPECT_EQ(set.err, "");
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

// x of every box of each row of the picture.
std::map<std::string, std::vector<double>> BoxesByRow(const std::string& html) {
  std::map<std::string, std::vector<double>> rows;
  const std::string start = "<rect x=\"";
  for (size_t at = html.find(start); at != std::string::npos; at = html.find(start, at + 1)) {
    const size_t y = html.find("y=\"", at) + 3;
    rows[html.substr(y, html.find('"', y) - y)].push_back(std::stod(html.substr(at + 9)));
  }
  return rows;
}

// Boxes that are too many are left out evenly: the last stage does not look idle.
TEST_F(PlanCommandTest, TheTimelineOfALongStepCoversEveryStage) {
  const std::vector<std::string> pipeline = {job_,    "--format=html",
                                             "--set", "mesh.pp=4",
                                             "--set", "mesh.dp_shard=1",
                                             "--set", "mesh.tp=1",
                                             "--set", "parallelism.sequence_parallel=false",
                                             "--set"};
  std::vector<std::string> args = pipeline;
  args.push_back("batch.global=8192");
  const Result result = Invoke(RunPlan, args);
  ASSERT_EQ(result.code, kExitOk) << result.err;
  const auto rows = BoxesByRow(result.out);
  ASSERT_EQ(rows.size(), 4u);
  size_t boxes = 0;
  for (const auto& [row, begins] : rows) {
    boxes += begins.size();
    // The picture reaches from 70 to 1200; in a step this long every stage is busy all along.
    for (const double from : {100.0, 400.0, 800.0, 1150.0}) {
      const auto inside = std::count_if(begins.begin(), begins.end(),
                                        [from](double x) { return x >= from && x < from + 40; });
      EXPECT_GT(inside, 20) << "row " << row << " from " << from;
    }
  }
  EXPECT_LE(boxes, 20000u);
  EXPECT_TRUE(Has(result.out, "4 of 4 stages have too many spans")) << result.err;
  args = pipeline;
  args.push_back("batch.global=8");
  EXPECT_FALSE(Has(Invoke(RunPlan, args).out, "too many spans"));
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

TEST_F(PlanCommandTest, WhereWithoutAParameterListsTheNames) {
  const Result result = Invoke(RunWhere, {job_});
  ASSERT_EQ(result.code, kExitOk) << result.err;
  EXPECT_TRUE(Has(result.out, "model.layers.*.mlp.down_proj.weight  ")) << result.out;
  EXPECT_TRUE(Has(result.out, "  0-3  ")) << result.out;
  EXPECT_TRUE(Has(result.out, "[64, 128]  dimension 1")) << result.out;
  EXPECT_FALSE(Has(result.out, "model.layers.0.")) << result.out;
  const nlohmann::json json = nlohmann::json::parse(Invoke(RunWhere, {job_, "--format=json"}).out);
  int of_layers = 0;
  for (const nlohmann::json& name : json["names"]) {
    if (Has(name["name"], "model.layers.3.")) ++of_layers;
  }
  EXPECT_EQ(of_layers, 9);  // q, k, v, o; gate, up, down; two norms
}

TEST_F(PlanCommandTest, WhereFindsPatterns) {
  const nlohmann::json all = nlohmann::json::parse(
      Invoke(RunWhere, {job_, "model.layers.[12].mlp.*", "--format=json"}).out);
  ASSERT_EQ(all.size(), 6u);
  EXPECT_EQ(all[0]["parameter"], "model.layers.1.mlp.gate_proj.weight");
  EXPECT_EQ(all[5]["parameter"], "model.layers.2.mlp.down_proj.weight");
  EXPECT_EQ(Invoke(RunWhere, {job_, "model.layers.*.nothing"}).code, kExitJobError);
}

TEST_F(PlanCommandTest, WhereFiltersRanks) {
  const std::string name = "model.layers.3.mlp.down_proj.weight";
  const auto ranks = [&](const std::string& flag) {
    const Result result = Invoke(RunWhere, {job_, name, flag, "--format=json"});
    EXPECT_EQ(result.code, kExitOk) << result.err;
    std::vector<int64_t> found;
    const nlohmann::json json = nlohmann::json::parse(result.out);
    for (const nlohmann::json& shard : json["shards"]) {
      found.push_back(shard["rank"]);
    }
    return found;
  };
  EXPECT_EQ(ranks("--rank=2"), (std::vector<int64_t>{2}));
  EXPECT_EQ(ranks("--ranks=1-3"), (std::vector<int64_t>{1, 2, 3}));
  EXPECT_EQ(ranks("--ranks=1"), (std::vector<int64_t>{1}));
  for (const char* wrong : {"--rank=4", "--rank=1-2", "--ranks=2-4", "--ranks=3-1", "--rank=x"}) {
    EXPECT_EQ(Invoke(RunWhere, {job_, name, wrong}).code, kExitJobError) << wrong;
  }
  EXPECT_TRUE(Has(Invoke(RunWhere, {job_, name, "--rank=4"}).err,
                  "--rank 4 does not exist: the plan has ranks 0 to 3"));
}

TEST_F(PlanCommandTest, WhereHelpsWithNamesThatDoNotExist) {
  const auto problem = [&](const std::string& name) { return Invoke(RunWhere, {job_, name}).err; };
  EXPECT_TRUE(Has(problem("model.layers.4.mlp.down_proj.weight"), ": the layers are 0 to 3"));
  EXPECT_TRUE(Has(problem("down_proj"), "`*down_proj*` finds those that contain it"));
  EXPECT_TRUE(Has(problem("nothing"), "` lists all of them")) << problem("nothing");
}

TEST_F(PlanCommandTest, AFragmentHasNoPlan) {
  const std::string part = Path("part.yaml");
  ASSERT_TRUE(WriteFile(part, "partial: true\nmesh: {tp: 2}\n").ok());
  const Result result = Invoke(RunPlan, {part});
  EXPECT_EQ(result.code, kExitJobError);
  EXPECT_TRUE(Has(result.err, "is a fragment (partial: true), not a job")) << result.err;
}

TEST_F(PlanCommandTest, OneOfAKindIsSingular) {
  const std::vector<std::string> sets = {"--set", "cluster.gpus_per_node=1",
                                         "--set", "mesh={dp_shard: 1, tp: 1}",
                                         "--set", "parallelism={zero: 1, sequence_parallel: false}",
                                         "--set", "batch={global: 1, micro: 1}",
                                         "--set", "model.layers=1"};
  std::vector<std::string> args = {job_,
                                   "--show=summary,mesh,groups,ranks,memory,comm,timeline,program"};
  args.insert(args.end(), sets.begin(), sets.end());
  const Result result = Invoke(RunPlan, args);
  ASSERT_EQ(result.code, kExitOk) << result.err;
  EXPECT_TRUE(Has(result.out, "= 1 rank\n")) << result.out;
  EXPECT_TRUE(Has(result.out, "1 sequence of 64 tokens")) << result.out;
  EXPECT_TRUE(Has(result.out, "1 microbatch a rank")) << result.out;
  const std::regex plural(
      "(^|[^0-9.,\\[])1 (more )?(ranks|layers|stages|microbatches|groups|nodes|blocks|files|tokens|"
      "sequences|bytes|classes|calls|instructions|times|members)\\b");
  std::istringstream lines(result.out);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_FALSE(std::regex_search(line, plural)) << line;
  }
}

}  // namespace
}  // namespace planc
