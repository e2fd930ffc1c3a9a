#include "compiler/catalog/models.h"

namespace planc {

const std::vector<ModelPreset>& ModelPresets() {
  static const auto* const kPresets = [] {
    auto* presets = new std::vector<ModelPreset>();
#define PLANC_MODEL(name_text, family, layers, hidden, heads, kv_heads, head_dim, ffn_hidden, \
                    vocab, max_sequence, tie_embeddings, rope_theta, norm_epsilon,            \
                    parameter_count)                                                          \
  {                                                                                           \
    ModelPreset preset;                                                                       \
    preset.name = name_text;                                                                  \
    preset.parameters = parameter_count;                                                      \
    preset.model.set_family(proto::family);                                                   \
    preset.model.set_layers(layers);                                                          \
    preset.model.set_hidden(hidden);                                                          \
    preset.model.set_heads(heads);                                                            \
    preset.model.set_kv_heads(kv_heads);                                                      \
    preset.model.set_head_dim(head_dim);                                                      \
    preset.model.set_ffn_hidden(ffn_hidden);                                                  \
    preset.model.set_vocab(vocab);                                                            \
    preset.model.set_max_sequence(max_sequence);                                              \
    preset.model.set_tie_embeddings(tie_embeddings);                                          \
    preset.model.set_rope_theta(rope_theta);                                                  \
    preset.model.set_norm_epsilon(norm_epsilon);                                              \
    presets->push_back(preset);                                                               \
  }
#include "compiler/catalog/models.def"
#undef PLANC_MODEL
    return presets;
  }();
  return *kPresets;
}

const ModelPreset* FindModelPreset(const std::string& name) {
  for (const ModelPreset& preset : ModelPresets()) {
    if (preset.name == name) return &preset;
  }
  return nullptr;
}

}  // namespace planc
