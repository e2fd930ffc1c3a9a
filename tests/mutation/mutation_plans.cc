#include "tests/mutation/mutation_plans.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"

namespace planc {
namespace {

struct Variant {
  const char* name;
  const char* mesh_case;
  const char* sets;  // separated by blanks
};

constexpr Variant kVariants[] = {
    {"bf16", "llama_1", "precision.compute=bf16"},
    {"bf16_selective", "llama_selective", "precision.compute=bf16"},
    {"bf16_full", "llama_full", "precision.compute=bf16"},
    {"bf16_z1", "llama_ds2_z1", "precision.compute=bf16"},
    {"bf16_z2", "llama_dr2_ds2_z2", "precision.compute=bf16"},
    {"bf16_z3", "llama_ds4_z3_p2", "precision.compute=bf16"},
    {"bf16_sp", "llama_ds2_z3_tp2_sp_selective", "precision.compute=bf16"},
    {"bf16_interleaved", "llama_pp2_ds2_z3_int2_tp2_sp_full", "precision.compute=bf16"},
    {"bf16_async", "llama_async_ds2_z3_tp2", "precision.compute=bf16"},
    {"bf16_tied", "llama_tied_pp2_ds2_z3", "precision.compute=bf16"},
    {"bf16_chunks", "wide_micro4_ds2_z2_full", "precision.compute=bf16"},
    {"bf16_qwen2", "qwen2_ds2_z2_tp2_sp", "precision.compute=bf16 recompute=selective"},
    {"bf16_qwen3", "qwen3_tp2", "precision.compute=bf16 recompute=full"},
    {"bf16_gpt2", "gpt2_pp2_tp2_sp", "precision.compute=bf16"},
    {"bf16_gradients", "llama_dr2_ds2_z2", "precision.compute=bf16 precision.gradient_reduce=bf16"},
    {"bf16_gradients_z1", "llama_pp2_ds2_z1",
     "precision.compute=bf16 precision.gradient_reduce=bf16"},
    {"no_clipping", "llama_pp2_ds2_z1", "optimizer.clip_norm=0"},
    {"no_clipping_tied", "llama_tied_pp2_ds2_z3", "optimizer.clip_norm=0"},
    {"no_decay", "llama_tp2", "optimizer.weight_decay=0 lr_schedule.decay=constant"},
    {"no_validation", "llama_1", "data.validation=[]"},
    {"no_validation_pp2", "llama_pp2_ds2_z2_gpipe", "data.validation=[] recompute=selective"},
    {"two_nodes", "llama_dr2_ds2_z2_tp2", "cluster.nodes=2 cluster.gpus_per_node=4"},
    {"grouped_heads", "llama_tp2_sp", "model.kv_heads=2 model.rope_theta=500000"},
    {"gpt2_untied", "gpt2_pp2_dr2_ds2_z3_full", "model.tie_embeddings=false"},
    {"gpt2_selective", "gpt2_ds2_z2_tp2", "recompute=selective"},
    {"gpt2_tied_full", "gpt2_micro4_ds2_z1", "recompute=full"},
};

}  // namespace

const std::vector<MeshCase>& MutationCases() {
  static const std::vector<MeshCase>* const cases = [] {
    auto* const all = new std::vector<MeshCase>(AllMeshCases());
    const size_t count = all->size();
    for (const Variant& variant : kVariants) {
      MeshCase changed;
      for (size_t i = 0; i < count; ++i) {
        if ((*all)[i].name == variant.mesh_case) changed = (*all)[i];
      }
      EXPECT_FALSE(changed.name.empty()) << "no mesh case " << variant.mesh_case;
      changed.name = variant.name;
      for (const auto& set : absl::StrSplit(variant.sets, ' ')) changed.sets.emplace_back(set);
      all->push_back(changed);
    }
    return all;
  }();
  return *cases;
}

}  // namespace planc
