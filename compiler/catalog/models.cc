#include "compiler/catalog/models.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

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
#define PLANC_MODEL_SYNONYMS(called, models)
#include "compiler/catalog/models.def"
#undef PLANC_MODEL_SYNONYMS
#undef PLANC_MODEL
    return presets;
  }();
  return *kPresets;
}

std::vector<std::string> ModelPresetsCalled(const std::string& name) {
  // Hugging Face names are ORGANIZATION/MODEL, with the kind of tuning at the end.
  std::string wanted = absl::AsciiStrToLower(name.substr(name.rfind('/') + 1));
  for (const char* tuning : {"-hf", "-instruct", "-chat", "-base", "-chat-hf", "-pt"}) {
    wanted = std::string(absl::StripSuffix(wanted, tuning));
  }
  for (const auto& [called, models] : std::vector<std::pair<std::string, std::string>>{
#define PLANC_MODEL(...)
#define PLANC_MODEL_SYNONYMS(called, models) {called, models},
#include "compiler/catalog/models.def"
#undef PLANC_MODEL_SYNONYMS
#undef PLANC_MODEL
       }) {
    const std::vector<std::string> names = absl::StrSplit(called, ' ');
    if (std::find(names.begin(), names.end(), wanted) != names.end()) {
      return absl::StrSplit(models, ' ');
    }
  }
  // The same letters and numbers with other separators: Llama-3.1-8B, Qwen3_8B.
  const auto plain = [](std::string text) {
    text.erase(std::remove_if(text.begin(), text.end(),
                              [](char c) { return c == '-' || c == '_' || c == ' '; }),
               text.end());
    return text;
  };
  for (const ModelPreset& preset : ModelPresets()) {
    const std::string known = plain(preset.name);
    // Meta's names say the vendor before the series.
    if (known == plain(wanted) || known == plain(std::string(absl::StripPrefix(wanted, "meta-")))) {
      return {preset.name};
    }
  }
  return {};
}

const ModelPreset* FindModelPreset(const std::string& name) {
  for (const ModelPreset& preset : ModelPresets()) {
    if (preset.name == name) return &preset;
  }
  return nullptr;
}

}  // namespace planc
