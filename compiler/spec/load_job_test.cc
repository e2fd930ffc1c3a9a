#include "compiler/spec/load_job.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "compiler/diagnostics/render_text.h"
#include "compiler/spec/job_schema.h"
#include "compiler/spec/yaml_reader.h"
#include "gtest/gtest.h"

namespace planc {
namespace {

constexpr char kJob[] = R"(job: test
model: {family: llama, layers: 4, hidden: 128, heads: 4, ffn_hidden: 384, vocab: 256}
cluster: {gpus_per_node: 4, device: host}
mesh: {dp_shard: 2, tp: 2}
batch: {global: 8, micro: 2, sequence: 256}
optimizer: {lr: 1e-3}
data: {train: [train.bin]}
run: {steps: 100}
)";

constexpr char kLlama405b[] = R"(job: llama3-405b-16k
model: {preset: llama3.1-405b}
cluster: {nodes: 2048, gpus_per_node: 8, device: h100-sxm-80gb}
mesh: {pp: 16, dp_replicate: 1, dp_shard: 128, cp: 1, tp: 8, ep: 1, etp: 1}
parallelism:
  zero: 1
  sequence_parallel: true
  pipeline: {schedule: interleaved_1f1b, virtual_stages: 8}
batch: {global: 2048, micro: 1, sequence: 8192}
precision: {compute: bf16, master: fp32, gradient_reduce: fp32, optimizer_state: fp32}
recompute: selective
optimizer: {name: adamw, lr: 8e-5, betas: [0.9, 0.95], epsilon: 1e-8, weight_decay: 0.1}
lr_schedule: {warmup_steps: 8000, decay: cosine, min_ratio: 0.01}
data: {train: [corpus], validation: [held_out], token_bytes: 4}
checkpoint: {every_steps: 500, resume: auto}
run: {steps: 1000000, eval_every_steps: 1k}
)";

// Loads `text` as configs/job.yaml.
LoadResult Load(const std::string& text, const std::vector<std::string>& sets = {},
                std::map<std::string, std::string> others = {}) {
  others["configs/job.yaml"] = text;
  return LoadJobText("configs/job.yaml", others, sets);
}

std::string Problems(const LoadResult& result) {
  return RenderText(result.diagnostics, result.sources, /*colour=*/false);
}

bool Has(const LoadResult& result, DiagnosticCode code) {
  for (const Diagnostic& diagnostic : result.diagnostics.entries()) {
    if (diagnostic.code == code) return true;
  }
  return false;
}

TEST(LoadJobTest, ResolvesDefaultsAndDerivedValues) {
  const LoadResult result = Load(kJob);
  ASSERT_TRUE(result.ok) << Problems(result);
  EXPECT_EQ(Problems(result), "");
  const proto::Job& job = result.spec.job;
  EXPECT_EQ(job.model().kv_heads(), 4);
  EXPECT_EQ(job.model().head_dim(), 32);
  EXPECT_EQ(job.model().max_sequence(), 256);
  EXPECT_FALSE(job.model().tie_embeddings());
  EXPECT_EQ(job.mesh().pp(), 1);
  EXPECT_EQ(job.optimizer().betas(1), 0.95);
  EXPECT_EQ(job.parallelism().pipeline().schedule(), proto::ONE_F_ONE_B);
  EXPECT_EQ(job.parallelism().pipeline().stage_layers_size(), 1);
  EXPECT_EQ(job.run().directory(), "runs/test");
  EXPECT_EQ(job.checkpoint().directory(), "runs/test/checkpoints");
  EXPECT_FALSE(job.cluster().has_memory());
  EXPECT_FALSE(job.model().has_moe());
}

TEST(LoadJobTest, WithoutAMeshAllRanksShard) {
  const std::string mesh = "mesh: {dp_shard: 2, tp: 2}\n";
  std::string text = kJob;
  text.erase(text.find(mesh), mesh.size());
  const LoadResult result = Load(text, {"cluster.nodes=2", "batch.micro=1"});
  ASSERT_TRUE(result.ok) << Problems(result);
  EXPECT_EQ(result.spec.job.mesh().dp_shard(), 8);
  EXPECT_EQ(result.spec.origins.at("mesh.dp_shard").kind, Origin::Kind::kDerived);
  // As soon as an axis is given, the mesh is explicit.
  EXPECT_TRUE(Has(Load(text, {"mesh.tp=2"}), DiagnosticCode::kWorldProduct));
  EXPECT_TRUE(Has(Load(text, {"mesh.tp=1"}), DiagnosticCode::kWorldProduct));
  EXPECT_EQ(Load(text, {"mesh.ep=1"}).spec.job.mesh().dp_shard(), 4);
  EXPECT_EQ(Load(text, {"cluster.gpus_per_node=1"}).spec.job.mesh().dp_shard(), 1);
}

TEST(LoadJobTest, EveryValueHasAnOrigin) {
  const LoadResult result = Load(kJob, {"run.seed=7"});
  ASSERT_TRUE(result.ok) << Problems(result);
  for (const JobKey& key : AllJobKeys()) {
    // Nothing was asked for and nothing follows: no preset, a host without bound, no experts.
    const bool absent =
        key.in_optional || key.path == "model.preset" || key.path == "cluster.memory";
    EXPECT_EQ(result.spec.origins.count(key.path) > 0, !absent) << key.path;
  }
  const Origin& tp = result.spec.origins.at("mesh.tp");
  EXPECT_EQ(tp.kind, Origin::Kind::kFile);
  EXPECT_EQ(tp.file, "configs/job.yaml");
  EXPECT_EQ(tp.line, 4);
  EXPECT_EQ(tp.column, 25);
  EXPECT_EQ(result.spec.origins.at("run.seed").kind, Origin::Kind::kSet);
  EXPECT_EQ(result.spec.origins.at("mesh.pp").kind, Origin::Kind::kDefault);
  EXPECT_EQ(result.spec.origins.at("model.head_dim").kind, Origin::Kind::kDerived);
}

TEST(LoadJobTest, Llama405bOnSixteenThousandDevices) {
  const LoadResult result = Load(kLlama405b);
  ASSERT_TRUE(result.ok) << Problems(result);
  const proto::Job& job = result.spec.job;
  EXPECT_EQ(job.model().layers(), 126);
  EXPECT_EQ(job.cluster().memory(), int64_t{79} << 30);
  EXPECT_EQ(job.run().eval_every_steps(), 1000);
  const auto& stages = job.parallelism().pipeline().stage_layers();
  ASSERT_EQ(stages.size(), 128);
  EXPECT_EQ(stages[0], 0);
  EXPECT_EQ(stages[1], 1);
  EXPECT_EQ(stages[126], 1);
  EXPECT_EQ(stages[127], 0);
  const Origin& layers = result.spec.origins.at("model.layers");
  EXPECT_EQ(layers.kind, Origin::Kind::kPreset);
  EXPECT_EQ(layers.file, "llama3.1-405b");
}

TEST(LoadJobTest, KeysBesideAPresetReplaceIt) {
  const LoadResult result = Load(kLlama405b, {"model.vocab=32Ki", "model.layers=128"});
  ASSERT_TRUE(result.ok) << Problems(result);
  EXPECT_EQ(result.spec.job.model().vocab(), 32768);
  EXPECT_EQ(result.spec.job.model().hidden(), 16384);
}

TEST(LoadJobTest, AutoTakesWhatTheOtherAxesLeave) {
  const LoadResult result = Load(kJob, {"mesh.dp_shard=auto", "mesh.tp=1"});
  ASSERT_TRUE(result.ok) << Problems(result);
  EXPECT_EQ(result.spec.job.mesh().dp_shard(), 4);
  EXPECT_EQ(result.spec.origins.at("mesh.dp_shard").text, "auto");
}

TEST(LoadJobTest, PathsAreKeptRelativeToTheJobFile) {
  const std::map<std::string, std::string> others = {
      {"shared/base.yaml", "data: {validation: [v.bin], format: bytes}\nrun: {steps: 9}\n"}};
  const LoadResult result =
      Load(absl::StrCat("include: ../shared/base.yaml\n", kJob),
           {"run.directory=out", "checkpoint.resume=old/step-00000005"}, others);
  ASSERT_TRUE(result.ok) << Problems(result);
  const proto::Job& job = result.spec.job;
  EXPECT_EQ(job.data().train(0), "train.bin");
  EXPECT_EQ(job.data().validation(0), "../shared/v.bin");
  EXPECT_EQ(job.run().directory(), "../out");
  EXPECT_EQ(job.checkpoint().directory(), "../out/checkpoints");
  EXPECT_EQ(job.checkpoint().resume(), "../old/step-00000005");
  // The including file's value replaces the included one; the rest of the map merges.
  EXPECT_EQ(job.run().steps(), 100);
  EXPECT_EQ(job.data().format(), proto::BYTES);
  EXPECT_EQ(result.spec.origins.at("data.format").file, "shared/base.yaml");
}

TEST(LoadJobTest, LaterIncludesReplaceEarlierOnesAndListsAreReplaced) {
  const std::map<std::string, std::string> others = {
      {"configs/a.yaml", "optimizer: {betas: [0.1, 0.2], lr: 1}\n"},
      {"configs/b.yaml", "optimizer: {betas: [0.3, 0.4]}\n"}};
  const LoadResult result = Load(absl::StrCat("include: [a.yaml, b.yaml]\n", kJob), {}, others);
  ASSERT_TRUE(result.ok) << Problems(result);
  ASSERT_EQ(result.spec.job.optimizer().betas_size(), 2);
  EXPECT_EQ(result.spec.job.optimizer().betas(0), 0.3);
  EXPECT_EQ(result.spec.job.optimizer().lr(), 1e-3);
}

TEST(LoadJobTest, IncludeCyclesNameTheirFiles) {
  const LoadResult result =
      Load("include: b.yaml\n", {}, {{"configs/b.yaml", "include: job.yaml\n"}});
  EXPECT_TRUE(Has(result, DiagnosticCode::kIncludeCycle));
  EXPECT_NE(Problems(result).find("configs/job.yaml -> configs/b.yaml -> configs/job.yaml"),
            std::string::npos)
      << Problems(result);
}

TEST(LoadJobTest, SetsAreTypedAndPlaced) {
  const LoadResult unknown = Load(kJob, {"run.steps=5", "mesh.tpp=4"});
  ASSERT_EQ(unknown.diagnostics.entries().size(), 1u) << Problems(unknown);
  const Diagnostic& diagnostic = unknown.diagnostics.entries().front();
  EXPECT_EQ(diagnostic.code, DiagnosticCode::kUnknownKey);
  EXPECT_EQ(diagnostic.span.file, "--set");
  EXPECT_EQ(diagnostic.span.line, 2);
  EXPECT_EQ(diagnostic.span.column, 6);
  EXPECT_NE(diagnostic.fix.find("mesh.tp"), std::string::npos) << diagnostic.fix;

  EXPECT_TRUE(Has(Load(kJob, {"run.steps=many"}), DiagnosticCode::kBadNumber));
  EXPECT_TRUE(Has(Load(kJob, {"run.steps="}), DiagnosticCode::kEmptyValue));
  EXPECT_TRUE(Has(Load(kJob, {"run.steps"}), DiagnosticCode::kBadSet));
  EXPECT_TRUE(Has(Load(kJob, {".=1"}), DiagnosticCode::kBadSet));
  EXPECT_TRUE(Has(Load(kJob, {"include=x.yaml"}), DiagnosticCode::kBadSet));
  EXPECT_TRUE(Has(Load(kJob, {"mesh=4"}), DiagnosticCode::kWrongType));
  const LoadResult list = Load(kJob, {"optimizer.betas=[0.8, 0.9]", "mesh={tp: 1, dp_shard: 4}"});
  ASSERT_TRUE(list.ok) << Problems(list);
  EXPECT_EQ(list.spec.job.optimizer().betas(0), 0.8);
  EXPECT_EQ(list.spec.job.mesh().dp_shard(), 4);
}

TEST(LoadJobTest, ReportsAllErrorsOfAPhaseInOrder) {
  const LoadResult result = Load(R"(job: test
modell: {family: llama}
cluster: {gpus_per_node: four, device: host}
mesh: {dpshard: 2}
zero: 3
run: {steps: -1}
)");
  EXPECT_FALSE(result.ok);
  const auto& entries = result.diagnostics.entries();
  ASSERT_GE(entries.size(), 5u) << Problems(result);
  EXPECT_FALSE(Has(result, DiagnosticCode::kWorldProduct)) << Problems(result);
  for (size_t index = 1; index < entries.size(); ++index) {
    EXPECT_LE(entries[index - 1].span.line, entries[index].span.line);
  }
  const std::string text = Problems(result);
  EXPECT_NE(text.find("did you mean model?"), std::string::npos) << text;
  EXPECT_NE(text.find("did you mean mesh.dp_shard?"), std::string::npos) << text;
  EXPECT_NE(text.find("did you mean parallelism.zero?"), std::string::npos) << text;
}

TEST(LoadJobTest, EquationsNameValuesAndNearestValidOnes) {
  const LoadResult world = Load(kJob, {"mesh.tp=4", "cluster.gpus_per_node=6"});
  ASSERT_FALSE(world.diagnostics.entries().empty());
  EXPECT_EQ(world.diagnostics.entries().front().message,
            "the mesh does not fill the cluster: pp 1 * dp_replicate 1 * dp_shard 2 * cp 1 * tp 4 "
            "= 8, but nodes 1 * gpus_per_node 6 = 6");
  // No tp: 3, which the 4 heads refuse.
  EXPECT_EQ(world.diagnostics.entries().front().fix, "mesh.tp: 1 with mesh.pp: 3");
  ASSERT_TRUE(Load(kJob, {"mesh.tp=1", "mesh.pp=3", "cluster.gpus_per_node=6"}).ok);
  const std::string batch = Problems(Load(kJob, {"batch.global=10"}));
  EXPECT_NE(batch.find("batch.global: 8 or 12"), std::string::npos) << batch;
}

TEST(LoadJobTest, ValueErrorsHideNoRuleErrors) {
  const LoadResult result =
      Load(kJob, {"model.heads=6", "model.hidden=96", "mesh.tp=4", "mesh.dp_shard=1",
                  "batch.micro=3", "precision.compute=fp33", "optimizer.lrr=1", "job=a b"});
  EXPECT_EQ(result.diagnostics.ErrorCount(), 5u) << Problems(result);
  for (const DiagnosticCode code :
       {DiagnosticCode::kTensorHeads, DiagnosticCode::kBatchProduct, DiagnosticCode::kUnknownChoice,
        DiagnosticCode::kUnknownKey, DiagnosticCode::kBadJobName}) {
    EXPECT_TRUE(Has(result, code)) << Problems(result);
  }
}

// What job.proto says about this version is what the rules say.
TEST(LoadJobTest, ValuesThatDoNotRunAreRefused) {
  for (const JobKey& key : AllJobKeys()) {
    if (!key.key->has_runs()) continue;
    std::vector<std::string> values = {"1", "2", "3", "4"};
    if (key.field->cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_ENUM) {
      values = EnumTexts(*key.field->enum_type());
    }
    const std::vector<std::string> runs = absl::StrSplit(key.key->runs(), ' ');
    for (const std::string& value : values) {
      const LoadResult result = Load(kJob, {absl::StrCat(key.path, "=", value)});
      bool refused =
          Has(result, DiagnosticCode::kTokenBytes) || Has(result, DiagnosticCode::kOutOfRange);
      for (const Diagnostic& entry : result.diagnostics.entries()) {
        refused = refused || (entry.code >= DiagnosticCode::kAxisNotAvailable &&
                              entry.code <= DiagnosticCode::kOptimizerStateNotAvailable);
      }
      const bool should_run = std::find(runs.begin(), runs.end(), value) != runs.end();
      EXPECT_EQ(refused, !should_run) << key.path << ": " << value << "\n" << Problems(result);
    }
  }
}

TEST(LoadJobTest, NoFollowUpErrors) {
  // What follows from a value that is in doubt is not reported.
  for (const char* set :
       {"cluster.gpus_per_node=four", "mesh.dp_shard=x", "mesh.dpshard=4", "model.heads=many",
        "model.preset=llama3-8b", "batch.sequence=long", "run.steps=", "job=a/b"}) {
    const LoadResult result = Load(kJob, {set});
    EXPECT_EQ(result.diagnostics.entries().size(), 1u) << set << "\n" << Problems(result);
  }
}

TEST(LoadJobTest, TheSameJobIsTheSameFromAnyWorkingDirectory) {
  const std::string text = absl::StrCat(
      kJob, "checkpoint: {directory: ../out/checkpoints, resume: /abs/step-00000001}\n");
  const LoadResult here = LoadJobText("job.yaml", {{"job.yaml", text}}, {});
  ASSERT_TRUE(here.ok) << Problems(here);
  EXPECT_EQ(here.spec.job.checkpoint().directory(), "../out/checkpoints");
  EXPECT_EQ(here.spec.job.checkpoint().resume(), "/abs/step-00000001");
  for (const std::string path : {"a/job.yaml", "../b/job.yaml", "/home/of/job.yaml"}) {
    const LoadResult there = LoadJobText(path, {{path, text}}, {});
    ASSERT_TRUE(there.ok) << Problems(there);
    EXPECT_EQ(there.spec.job.SerializeAsString(), here.spec.job.SerializeAsString()) << path;
  }
}

TEST(LoadJobTest, FilesAboveTheLimitAreRefused) {
  const std::string large = absl::StrCat(kJob, "# ", std::string(kMaxFileBytes, 'x'), "\n");
  EXPECT_TRUE(Has(Load(large), DiagnosticCode::kFileTooLarge));
}

TEST(LoadJobTest, StrangeInputIsReportedNotFatal) {
  const std::vector<std::string> texts = {"",
                                          "\n",
                                          "# nothing\n",
                                          "---\n...\n",
                                          "null",
                                          "[",
                                          "{",
                                          "a: b: c",
                                          "\t",
                                          "\xff\xfe\x00\x01",
                                          "? a\n: b",
                                          "- - -",
                                          "\"unclosed",
                                          "job: |\n  a\n  b\n",
                                          "%YAML 9.9\n---\na: b\n",
                                          "*x",
                                          "&x a",
                                          "!<tag:x> {a: b}",
                                          "job: ~\nmodel: ~\n",
                                          "? [a]\n: {b: c}\n",
                                          "include:",
                                          "include: [1, [2]]\n"};
  for (const std::string& text : texts) {
    const LoadResult result = Load(text);
    EXPECT_FALSE(result.ok) << text;
    EXPECT_TRUE(result.diagnostics.HasErrors()) << text;
  }
}

TEST(LoadJobTest, ReadsFromTheFileSystem) {
  const LoadResult result = LoadJob("jobs/quickstart.yaml", {});
  EXPECT_TRUE(result.ok) << Problems(result);
  EXPECT_TRUE(Has(LoadJob("jobs", {}), DiagnosticCode::kFileUnreadable));
  EXPECT_TRUE(Has(LoadJob("jobs/none.yaml", {}), DiagnosticCode::kFileUnreadable));
  EXPECT_TRUE(Has(LoadJob("/dev/null", {}), DiagnosticCode::kFileUnreadable));
}

TEST(LoadJobTest, AFragmentIsCheckedByItself) {
  const auto load = [](const std::string& text) {
    return LoadJobText("part.yaml", {{"part.yaml", text}}, {});
  };
  const LoadResult part = load("partial: true\nmesh: {tp: 2}\n");
  EXPECT_TRUE(part.partial);
  EXPECT_FALSE(part.ok);
  EXPECT_TRUE(part.diagnostics.entries().empty());
  EXPECT_TRUE(Has(load("partial: true\nmesh: {tpp: 2}\n"), DiagnosticCode::kUnknownKey));
  EXPECT_TRUE(Has(load("partial: true\nmesh: {tp: two}\n"), DiagnosticCode::kBadNumber));
  EXPECT_TRUE(Has(load("partial: true\nmesh: {tp: 0}\n"), DiagnosticCode::kOutOfRange));
  EXPECT_FALSE(load("partial: true\nmesh: {tp: 0}\n").partial);
  EXPECT_FALSE(load("partial: false\nmesh: {tp: 2}\n").partial);
  EXPECT_TRUE(Has(load("partial: false\nmesh: {tp: 2}\n"), DiagnosticCode::kMissingKey));
  EXPECT_TRUE(load("partial: maybe\n").diagnostics.HasErrors());
}

TEST(LoadJobTest, AFragmentDoesNotMakeOneOfTheFileThatIncludesIt) {
  std::map<std::string, std::string> files = {{"part.yaml", "partial: true\nmesh: {tp: 2}\n"},
                                              {"job.yaml", "include: part.yaml\n"}};
  EXPECT_FALSE(LoadJobText("job.yaml", files, {}).partial);
  EXPECT_TRUE(Has(LoadJobText("job.yaml", files, {}), DiagnosticCode::kMissingKey));
  files["job.yaml"] = "partial: true\ninclude: part.yaml\n";
  EXPECT_TRUE(LoadJobText("job.yaml", files, {}).partial);
}

}  // namespace
}  // namespace planc
