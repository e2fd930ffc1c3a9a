#include "tests/mesh_cases.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "compiler/diagnostics/render_text.h"
#include "compiler/pipeline.h"
#include "gtest/gtest.h"

namespace planc {
namespace {

struct Row {
  const char* name;
  const char* family;
  const char* sets;  // separated by spaces; world size is derived
};

// The keys are shortened: see Expand.
constexpr Row kRows[] = {
    {"llama_1", "llama", ""},
    {"llama_dr2", "llama", "dr=2"},
    {"llama_ds2_z1", "llama", "ds=2 zero=1"},
    {"llama_ds2_z2", "llama", "ds=2 zero=2"},
    {"llama_ds2_z3", "llama", "ds=2 zero=3"},
    {"llama_ds4_z3_p2", "llama", "ds=4 zero=3 prefetch=2"},
    {"llama_ds4_z3_p0_full", "llama", "ds=4 zero=3 prefetch=0 recompute=full"},
    {"llama_dr2_ds2_z1", "llama", "dr=2 ds=2 zero=1"},
    {"llama_dr2_ds2_z2", "llama", "dr=2 ds=2 zero=2"},
    {"llama_dr2_ds2_z3", "llama", "dr=2 ds=2 zero=3"},
    {"llama_tp2", "llama", "tp=2"},
    {"llama_tp2_sp", "llama", "tp=2 sp=true"},
    {"llama_tp4_sp_selective", "llama", "tp=4 sp=true recompute=selective"},
    {"llama_tp2_full", "llama", "tp=2 recompute=full"},
    {"llama_selective", "llama", "recompute=selective"},
    {"llama_full", "llama", "recompute=full"},
    {"llama_pp2_1f1b", "llama", "pp=2"},
    {"llama_pp2_gpipe", "llama", "pp=2 schedule=gpipe"},
    {"llama_pp2_int2", "llama", "pp=2 schedule=interleaved_1f1b v=2"},
    {"llama_pp4_1f1b", "llama", "pp=4"},
    {"llama_pp4_gpipe_full", "llama", "pp=4 schedule=gpipe recompute=full"},
    {"llama_ds2_z2_tp2_sp", "llama", "ds=2 zero=2 tp=2 sp=true"},
    {"llama_ds2_z3_tp2_sp_selective", "llama", "ds=2 zero=3 tp=2 sp=true recompute=selective"},
    {"llama_pp2_tp2_sp", "llama", "pp=2 tp=2 sp=true"},
    {"llama_pp2_ds2_z1", "llama", "pp=2 ds=2 zero=1"},
    {"llama_pp2_ds2_z2_gpipe", "llama", "pp=2 ds=2 zero=2 schedule=gpipe"},
    {"llama_pp2_ds2_z3", "llama", "pp=2 ds=2 zero=3"},
    {"llama_pp2_ds2_z3_int2_tp2_sp_full", "llama",
     "pp=2 ds=2 zero=3 schedule=interleaved_1f1b v=2 tp=2 sp=true recompute=full"},
    {"llama_pp2_dr2_ds2_z1", "llama", "pp=2 dr=2 ds=2 zero=1"},
    {"llama_pp2_ds2_z1_tp2", "llama", "pp=2 ds=2 zero=1 tp=2"},
    {"llama_dr2_ds2_z2_tp2", "llama", "dr=2 ds=2 zero=2 tp=2"},
    {"llama_micro2_ds2_z1", "llama", "ds=2 zero=1 micro=2"},
    {"llama_uneven_pp3", "llama", "pp=3 stage_layers=[1,2,1]"},
    {"llama_async_ds2_z3_tp2", "llama", "async=true ds=2 zero=3 tp=2"},
    {"llama_tied_pp2_dr2_full", "llama", "tied=true pp=2 dr=2 recompute=full"},
    {"llama_async_pp2_dr2_full", "llama", "async=true pp=2 dr=2 recompute=full"},
    {"llama_tied_1", "llama", "tied=true"},
    {"llama_tied_pp2_ds2_z3", "llama", "tied=true pp=2 ds=2 zero=3"},
    {"llama_tied_ds8_z2", "llama", "tied=true ds=8 zero=2"},  // one microbatch
    // One microbatch: gradients of layers take slots of saved activations.
    {"llama_micro8", "llama", "micro=8"},
    {"llama_micro8_selective_tp2_sp", "llama", "micro=8 recompute=selective tp=2 sp=true"},
    {"llama_micro2_dr2_ds2_z1_tp2", "llama", "micro=2 dr=2 ds=2 zero=1 tp=2"},
    {"llama_micro4_ds2_z2", "llama", "micro=4 ds=2 zero=2"},
    {"llama_micro4_ds2_z3_selective", "llama", "micro=4 ds=2 zero=3 recompute=selective"},
    {"llama_micro8_pp2", "llama", "micro=8 pp=2 schedule=gpipe"},
    // Logits of 256 tokens at a time; the last chunk of 384 has 128.
    {"wide_micro8", "llama_wide", "micro=8"},
    {"wide_micro8_tp2_sp_selective", "llama_wide", "micro=8 tp=2 sp=true recompute=selective"},
    {"wide_micro4_ds2_z2_full", "llama_wide", "micro=4 ds=2 zero=2 recompute=full"},
    {"wide_micro4_pp2", "llama_wide", "micro=4 pp=2"},
    {"wide_tied_micro4_dr2_tp2", "llama_wide", "tied=true micro=4 dr=2 tp=2"},
    {"qwen2_1", "qwen2", ""},
    {"qwen2_ds2_z2_tp2_sp", "qwen2", "ds=2 zero=2 tp=2 sp=true"},
    {"qwen2_pp2_ds2_z1_tp2", "qwen2", "pp=2 ds=2 zero=1 tp=2"},
    {"qwen3_1", "qwen3", ""},
    {"qwen3_tp2", "qwen3", "tp=2"},
    {"qwen3_ds2_z3_tp2_sp_selective", "qwen3", "ds=2 zero=3 tp=2 sp=true recompute=selective"},
    {"gpt2_1", "gpt2", ""},
    {"gpt2_pp2_tp2_sp", "gpt2", "pp=2 tp=2 sp=true"},
    {"gpt2_ds2_z2_tp2", "gpt2", "ds=2 zero=2 tp=2 schedule=gpipe"},
    {"gpt2_pp2_dr2_ds2_z3_full", "gpt2", "pp=2 dr=2 ds=2 zero=3 recompute=full"},
    {"gpt2_ds8_z3", "gpt2", "ds=8 zero=3"},
    {"gpt2_micro4_ds2_z1", "gpt2", "micro=4 ds=2 zero=1"},
};

struct ShortKey {
  const char* name;
  const char* key;
  bool mesh;  // multiplies the world size
};

constexpr ShortKey kShortKeys[] = {
    {"pp", "mesh.pp", true},
    {"dr", "mesh.dp_replicate", true},
    {"ds", "mesh.dp_shard", true},
    {"tp", "mesh.tp", true},
    {"zero", "parallelism.zero", false},
    {"prefetch", "parallelism.prefetch", false},
    {"sp", "parallelism.sequence_parallel", false},
    {"schedule", "parallelism.pipeline.schedule", false},
    {"v", "parallelism.pipeline.virtual_stages", false},
    {"stage_layers", "parallelism.pipeline.stage_layers", false},
    {"recompute", "recompute", false},
    {"micro", "batch.micro", false},
    {"tied", "model.tie_embeddings", false},
    {"async", "checkpoint.async", false},
};

std::vector<std::string> Expand(const std::string& text) {
  std::vector<std::string> sets;
  int world = 1;
  for (const auto& word : absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    const std::pair<std::string, std::string> pair = absl::StrSplit(word, absl::MaxSplits('=', 1));
    for (const ShortKey& key : kShortKeys) {
      if (pair.first != key.name) continue;
      sets.push_back(absl::StrCat(key.key, "=", pair.second));
      if (key.mesh) world *= std::stoi(pair.second);
    }
  }
  sets.push_back(absl::StrCat("cluster.gpus_per_node=", world));
  return sets;
}

}  // namespace

std::string BaseJob(const std::string& family) {
  const bool gpt = family == "gpt2";
  const bool wide = family == "llama_wide";
  const int sequence = wide ? 96 : 16;
  // Qwen3's heads are wider than hidden / heads, as in the published models.
  const std::string heads = gpt                 ? "heads: 4"
                            : family == "qwen3" ? "heads: 4, kv_heads: 2, head_dim: 12"
                                                : "heads: 4, kv_heads: 4";
  return absl::StrCat("job: mesh_case\nmodel: {family: ", wide ? "llama" : family,
                      ", layers: 4, hidden: 32, ", heads,
                      ", ffn_hidden: 64, vocab: ", wide ? 16390 : 259, ", max_sequence: ", sequence,
                      "}\nbatch: {global: 8, micro: 1, sequence: ", sequence, "}\n",
                      R"(cluster: {nodes: 1, gpus_per_node: 1, device: host}
precision: {compute: fp32}
optimizer: {lr: 1e-3, epsilon: 1e-5}
lr_schedule: {warmup_steps: 2, decay: cosine}
data: {train: [train.txt], validation: [validation.txt], format: bytes}
checkpoint: {directory: checkpoints}
run: {steps: 20, seed: 7, directory: run}
)");
}

std::vector<MeshCase> AllMeshCases() {
  std::vector<MeshCase> cases;
  for (const Row& row : kRows) cases.push_back({row.name, row.family, Expand(row.sets)});
  return cases;
}

LoadResult LoadMeshCase(const MeshCase& mesh_case, const std::vector<std::string>& more) {
  std::vector<std::string> sets = mesh_case.sets;
  sets.insert(sets.end(), more.begin(), more.end());
  return LoadJobText("job.yaml", {{"job.yaml", BaseJob(mesh_case.family)}}, sets);
}

Plan CompileMeshCase(const MeshCase& mesh_case, const std::vector<std::string>& more) {
  const LoadResult loaded = LoadMeshCase(mesh_case, more);
  EXPECT_TRUE(loaded.ok) << RenderText(loaded.diagnostics, loaded.sources, false);
  absl::StatusOr<Plan> plan = CompilePlan(loaded.spec);
  EXPECT_TRUE(plan.ok()) << plan.status().ToString();
  return *std::move(plan);
}

}  // namespace planc
