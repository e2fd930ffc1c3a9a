#include "schemas/verify_families.h"

#include "schemas/verify_report.h"

namespace planc::verifying {
namespace {

using Names = std::vector<std::string>;

// Llama (arXiv 2302.13971), Qwen 2 (2407.10671: biases of queries, keys and values) and Qwen 3
// (2505.09388: RMSNorm of each query and key head).
Family LlamaFamily(const proto::Model& m) {
  const int64_t h = m.hidden(), v = m.vocab(), f = m.ffn_hidden(), d = m.head_dim();
  const int64_t q = Times(m.heads(), d), kv = Times(m.kv_heads(), d);
  const std::string at = "model.layers.{layer}.self_attn.", mlp = "model.layers.{layer}.mlp.";
  const std::string norm1 = "model.layers.{layer}.input_layernorm.weight";
  const std::string norm2 = "model.layers.{layer}.post_attention_layernorm.weight";
  const Names qkv = {at + "q_proj.weight", at + "k_proj.weight", at + "v_proj.weight"};
  const Names qkv_bias = {at + "q_proj.bias", at + "k_proj.bias", at + "v_proj.bias"};
  const Names gate_up = {mlp + "gate_proj.weight", mlp + "up_proj.weight"};
  const std::string table = "model.embed_tokens.weight";
  Family family;
  family.parameters = {{table, {v, h}, 0},
                       {qkv[0], {q, h}, 0},
                       {qkv[1], {kv, h}, 0},
                       {qkv[2], {kv, h}, 0},
                       {at + "o_proj.weight", {h, q}, 1, Initial::kResidual},
                       {gate_up[0], {f, h}, 0},
                       {gate_up[1], {f, h}, 0},
                       {mlp + "down_proj.weight", {h, f}, 1, Initial::kResidual},
                       {norm1, {h}, -1, Initial::kOnes},
                       {norm2, {h}, -1, Initial::kOnes},
                       {"model.norm.weight", {h}, -1, Initial::kOnes}};
  family.embedding = {{Opcode::kEmbeddingForward, {Names{table}}}};
  family.attention = {{Opcode::kRmsNormForward, {Names{norm1}}}, {Opcode::kMatmul, {qkv}}};
  if (m.family() == proto::QWEN2) {
    family.parameters.push_back({qkv_bias[0], {q}, 0, Initial::kZeros});
    family.parameters.push_back({qkv_bias[1], {kv}, 0, Initial::kZeros});
    family.parameters.push_back({qkv_bias[2], {kv}, 0, Initial::kZeros});
    family.attention.push_back({Opcode::kBiasForward, {qkv_bias}});
  }
  if (m.family() == proto::QWEN3) {
    const std::string q_norm = at + "q_norm.weight", k_norm = at + "k_norm.weight";
    family.parameters.push_back({q_norm, {d}, -1, Initial::kOnes});
    family.parameters.push_back({k_norm, {d}, -1, Initial::kOnes});
    family.attention.push_back({Opcode::kHeadNormForward, {Names{q_norm}, Names{k_norm}}});
  }
  family.attention.push_back({Opcode::kRopeForward});
  family.attention.push_back({Opcode::kAttentionForward});
  family.attention.push_back({Opcode::kMatmul, {Names{at + "o_proj.weight"}}});
  family.mlp = {{Opcode::kRmsNormForward, {Names{norm2}}},
                {Opcode::kMatmul, {gate_up}},
                {Opcode::kSwigluForward},
                {Opcode::kMatmul, {Names{mlp + "down_proj.weight"}}}};
  const std::string output = m.tie_embeddings() ? table : "lm_head.weight";
  if (!m.tie_embeddings()) family.parameters.push_back({output, {v, h}, 0});
  family.head = {{Opcode::kRmsNormForward, {Names{"model.norm.weight"}}},
                 {Opcode::kMatmul, {Names{output}}}};
  return family;
}

// GPT-2 (Radford et al. 2019) and GPT-3 (arXiv 2005.14165).
Family GptFamily(const proto::Model& m) {
  const int64_t h = m.hidden(), v = m.vocab(), f = m.ffn_hidden();
  const int64_t q = Times(m.heads(), m.head_dim()), kv = Times(m.kv_heads(), m.head_dim());
  const std::string at = "transformer.h.{layer}.attn.", mlp = "transformer.h.{layer}.mlp.";
  const std::string norm1 = "transformer.h.{layer}.ln_1", norm2 = "transformer.h.{layer}.ln_2";
  const std::string last = "transformer.ln_f";
  const Names qkv = {at + "c_attn.q.weight", at + "c_attn.k.weight", at + "c_attn.v.weight"};
  const Names qkv_bias = {at + "c_attn.q.bias", at + "c_attn.k.bias", at + "c_attn.v.bias"};
  const std::string table = "transformer.wte.weight", positions = "transformer.wpe.weight";
  Family family;
  family.parameters = {{table, {v, h}, 0},
                       {positions, {m.max_sequence(), h}},
                       {qkv[0], {q, h}, 0, Initial::kNormal, true},
                       {qkv[1], {kv, h}, 0, Initial::kNormal, true},
                       {qkv[2], {kv, h}, 0, Initial::kNormal, true},
                       {at + "c_proj.weight", {h, q}, 1, Initial::kResidual, true},
                       {mlp + "c_fc.weight", {f, h}, 0, Initial::kNormal, true},
                       {mlp + "c_proj.weight", {h, f}, 1, Initial::kResidual, true},
                       {qkv_bias[0], {q}, 0, Initial::kZeros},
                       {qkv_bias[1], {kv}, 0, Initial::kZeros},
                       {qkv_bias[2], {kv}, 0, Initial::kZeros},
                       {mlp + "c_fc.bias", {f}, 0, Initial::kZeros},
                       {at + "c_proj.bias", {h}, -1, Initial::kZeros},
                       {mlp + "c_proj.bias", {h}, -1, Initial::kZeros}};
  for (const std::string& norm : {norm1, norm2, last}) {
    family.parameters.push_back({norm + ".weight", {h}, -1, Initial::kOnes});
    family.parameters.push_back({norm + ".bias", {h}, -1, Initial::kZeros});
  }
  const auto layer_norm = [](const std::string& norm) {
    return FamilyStep{Opcode::kLayerNormForward, {Names{norm + ".weight"}, Names{norm + ".bias"}}};
  };
  family.embedding = {{Opcode::kEmbeddingForward, {Names{table}}},
                      {Opcode::kPositionForward, {Names{positions}}}};
  family.attention = {layer_norm(norm1),
                      {Opcode::kMatmul, {qkv}},
                      {Opcode::kBiasForward, {qkv_bias}},
                      {Opcode::kAttentionForward},
                      {Opcode::kMatmul, {Names{at + "c_proj.weight"}}},
                      {Opcode::kBiasForward, {Names{at + "c_proj.bias"}}}};
  family.mlp = {layer_norm(norm2),
                {Opcode::kMatmul, {Names{mlp + "c_fc.weight"}}},
                {Opcode::kBiasForward, {Names{mlp + "c_fc.bias"}}},
                {Opcode::kGeluForward},
                {Opcode::kMatmul, {Names{mlp + "c_proj.weight"}}},
                {Opcode::kBiasForward, {Names{mlp + "c_proj.bias"}}}};
  const std::string output = m.tie_embeddings() ? table : "lm_head.weight";
  if (!m.tie_embeddings()) family.parameters.push_back({output, {v, h}, 0});
  family.head = {layer_norm(last), {Opcode::kMatmul, {Names{output}}}};
  return family;
}

}  // namespace

Family FamilyOf(const proto::Model& model) {
  switch (model.family()) {
    case proto::LLAMA:
    case proto::QWEN2:
    case proto::QWEN3:
      return LlamaFamily(model);
    case proto::GPT2:
    case proto::GPT3:
      return GptFamily(model);
    case proto::FAMILY_UNSET:
    case proto::MIXTRAL:
    case proto::DEEPSEEK_V3:
      return {};
  }
  return {};
}

}  // namespace planc::verifying
