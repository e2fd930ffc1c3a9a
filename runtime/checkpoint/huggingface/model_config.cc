#include "runtime/checkpoint/huggingface/model_config.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace planc {
namespace {

using Json = nlohmann::json;

bool IsGpt(const proto::Model& model) {
  return model.family() == proto::GPT2 || model.family() == proto::GPT3;
}

// Why no architecture describes the model; empty when one does.
std::string WhyInexpressible(const proto::Model& model) {
  if (IsGpt(model)) {
    if (model.kv_heads() != model.heads()) {
      return absl::StrCat("gpt2 has no grouped keys and values: model.kv_heads ", model.kv_heads(),
                          " is not model.heads ", model.heads());
    }
    if (model.heads() * model.head_dim() != model.hidden()) {
      return absl::StrCat("gpt2 needs model.heads * model.head_dim = model.hidden: ", model.heads(),
                          " * ", model.head_dim(), " is not ", model.hidden());
    }
    return "";
  }
  switch (model.family()) {
    case proto::LLAMA:
    case proto::QWEN2:
    case proto::QWEN3:
      return "";
    default:
      return "only models of the families llama, qwen2, qwen3, gpt2 and gpt3 have a Hugging Face "
             "form here";
  }
}

// The keys that determine what GPT2LMHeadModel computes.
Json GptKeys(const proto::Model& model) {
  return {{"model_type", "gpt2"},
          {"vocab_size", model.vocab()},
          {"n_positions", model.max_sequence()},
          {"n_embd", model.hidden()},
          {"n_layer", model.layers()},
          {"n_head", model.heads()},
          {"n_inner", model.ffn_hidden()},
          {"activation_function", "gelu_new"},
          {"layer_norm_epsilon", model.norm_epsilon()},
          {"scale_attn_weights", true},
          {"scale_attn_by_inverse_layer_idx", false},
          {"tie_word_embeddings", model.tie_embeddings()}};
}

// The same for the three architectures with rotary embedding.
Json RotaryKeys(const proto::Model& model) {
  Json keys = {{"vocab_size", model.vocab()},
               {"hidden_size", model.hidden()},
               {"intermediate_size", model.ffn_hidden()},
               {"num_hidden_layers", model.layers()},
               {"num_attention_heads", model.heads()},
               {"num_key_value_heads", model.kv_heads()},
               {"head_dim", model.head_dim()},
               {"hidden_act", "silu"},
               {"rms_norm_eps", model.norm_epsilon()},
               {"rope_theta", model.rope_theta()},
               {"rope_scaling", nullptr},
               {"tie_word_embeddings", model.tie_embeddings()}};
  if (model.family() == proto::LLAMA) {
    keys["model_type"] = "llama";
    keys["attention_bias"] = false;
    keys["mlp_bias"] = false;
    return keys;
  }
  keys["use_sliding_window"] = false;
  if (model.family() == proto::QWEN2) {
    keys["model_type"] = "qwen2";
  } else {
    keys["model_type"] = "qwen3";
    keys["attention_bias"] = false;
  }
  return keys;
}

Json KeysOf(const proto::Model& model) { return IsGpt(model) ? GptKeys(model) : RotaryKeys(model); }

std::string ArchitectureOf(const std::string& model_type) {
  if (model_type == "llama") return "LlamaForCausalLM";
  if (model_type == "qwen2") return "Qwen2ForCausalLM";
  return model_type == "qwen3" ? "Qwen3ForCausalLM" : "GPT2LMHeadModel";
}

// What a missing key means to the transformers library.
Json DefaultOf(const std::string& key, const proto::Model& model, const Json& config) {
  if (key == "num_key_value_heads") {
    // Llama takes the number of query heads, the others 32.
    return model.family() == proto::LLAMA ? config.value("num_attention_heads", Json(32))
                                          : Json(32);
  }
  if (key == "head_dim") {
    if (model.family() == proto::QWEN3) return 128;
    const Json hidden = config.value("hidden_size", Json());
    const Json heads = config.value("num_attention_heads", Json());
    if (!hidden.is_number_integer() || !heads.is_number_integer() || heads <= 0) return Json();
    return hidden.get<int64_t>() / heads.get<int64_t>();
  }
  static const auto* const defaults = new Json({{"hidden_act", "silu"},
                                                {"rms_norm_eps", 1e-6},
                                                {"rope_theta", 10000.0},
                                                {"attention_bias", false},
                                                {"mlp_bias", false},
                                                {"use_sliding_window", false},
                                                {"activation_function", "gelu_new"},
                                                {"layer_norm_epsilon", 1e-5},
                                                {"scale_attn_weights", true},
                                                {"scale_attn_by_inverse_layer_idx", false}});
  if (key == "tie_word_embeddings") return IsGpt(model);
  return defaults->value(key, Json());
}

bool MeansNoScaling(const Json& scaling) {
  if (scaling.is_null()) return true;
  if (!scaling.is_object()) return false;
  const Json type = scaling.value("rope_type", scaling.value("type", Json("default")));
  return type == "default";
}

// The config in the words of KeysOf: some versions of the library spell a few things differently.
Json Normalized(const Json& config) {
  Json normal = config;
  const auto rope = config.find("rope_parameters");
  if (rope != config.end() && rope->is_object()) {
    if (rope->contains("rope_theta")) normal["rope_theta"] = (*rope)["rope_theta"];
    normal["rope_scaling"] = *rope;
  }
  if (MeansNoScaling(normal.value("rope_scaling", Json()))) normal["rope_scaling"] = nullptr;
  const auto inner = config.find("n_inner");
  if (config.value("model_type", Json()) == "gpt2" && (inner == config.end() || inner->is_null()) &&
      config.value("n_embd", Json()).is_number_integer()) {
    normal["n_inner"] = 4 * config["n_embd"].get<int64_t>();
  }
  for (const char* const key : {"head_dim", "num_key_value_heads"}) {
    if (normal.contains(key) && normal[key].is_null()) normal.erase(key);
  }
  // Another name of the same function.
  if (normal.value("activation_function", Json()) == "gelu_pytorch_tanh") {
    normal["activation_function"] = "gelu_new";
  }
  return normal;
}

// Settings that planc has no word for, where they change what the model computes.
void FindForeignSettings(const Json& config, std::vector<std::string>* contradictions) {
  const auto layers = config.find("layer_types");
  if (layers != config.end() && layers->is_array()) {
    for (const Json& type : *layers) {
      if (type == "full_attention") continue;
      contradictions->push_back(absl::StrCat("layer_types has ", type.dump(),
                                             ", but every layer of the job's model has full "
                                             "attention"));
      break;
    }
  }
  if (config.contains("quantization_config") && !config["quantization_config"].is_null()) {
    contradictions->push_back("quantization_config: the job's model is not quantized");
  }
}

// Reads the sizes of a model from a normalized config.
class ConfigReader {
 public:
  explicit ConfigReader(const Json& config) : config_(config) {}

  absl::StatusOr<proto::Model> Read() {
    const Json type = config_.value("model_type", Json());
    if (type == "gpt2") {
      model_.set_family(proto::GPT2);
      ReadGpt();
    } else if (type == "llama" || type == "qwen2" || type == "qwen3") {
      model_.set_family(type == "llama"   ? proto::LLAMA
                        : type == "qwen2" ? proto::QWEN2
                                          : proto::QWEN3);
      ReadRotary();
    } else {
      return absl::InvalidArgumentError(absl::StrCat(
          "model_type is ", type.dump(), "; planc trains llama, qwen2, qwen3 and gpt2"));
    }
    if (!missing_.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("not a whole number above 0: ", absl::StrJoin(missing_, ", ")));
    }
    return model_;
  }

 private:
  Json Value(const char* key) const {
    return config_.contains(key) ? config_[key] : DefaultOf(key, model_, config_);
  }
  int64_t Whole(const char* key) {
    const Json value = Value(key);
    if (value.is_number_integer() && value > 0) return value.get<int64_t>();
    missing_.emplace_back(key);
    return 1;
  }
  double Real(const char* key) {
    const Json value = Value(key);
    if (value.is_number() && value > 0) return value.get<double>();
    missing_.emplace_back(key);
    return 1;
  }

  void ReadGpt() {
    model_.set_vocab(Whole("vocab_size"));
    model_.set_max_sequence(Whole("n_positions"));
    model_.set_hidden(Whole("n_embd"));
    model_.set_layers(Whole("n_layer"));
    model_.set_heads(Whole("n_head"));
    model_.set_kv_heads(model_.heads());
    model_.set_head_dim(model_.hidden() / model_.heads());
    model_.set_ffn_hidden(Whole("n_inner"));
    model_.set_norm_epsilon(Real("layer_norm_epsilon"));
    model_.set_tie_embeddings(Value("tie_word_embeddings") == true);
  }

  void ReadRotary() {
    model_.set_vocab(Whole("vocab_size"));
    model_.set_max_sequence(Whole("max_position_embeddings"));
    model_.set_hidden(Whole("hidden_size"));
    model_.set_layers(Whole("num_hidden_layers"));
    model_.set_heads(Whole("num_attention_heads"));
    model_.set_kv_heads(Whole("num_key_value_heads"));
    model_.set_head_dim(Whole("head_dim"));
    model_.set_ffn_hidden(Whole("intermediate_size"));
    model_.set_rope_theta(Real("rope_theta"));
    model_.set_norm_epsilon(Real("rms_norm_eps"));
    model_.set_tie_embeddings(config_.value("tie_word_embeddings", Json(false)) == true);
  }

  const Json& config_;
  proto::Model model_;
  std::vector<std::string> missing_;
};

}  // namespace

absl::StatusOr<proto::Model> ModelOfConfig(const Json& config) {
  const Json normal = Normalized(config);
  absl::StatusOr<proto::Model> model = ConfigReader(normal).Read();
  if (!model.ok()) return model;
  const std::string reason = WhyInexpressible(*model);
  if (!reason.empty()) return absl::InvalidArgumentError(reason);
  const std::vector<std::string> contradictions = ConfigContradictions(config, *model);
  if (contradictions.empty()) return model;
  return absl::InvalidArgumentError(absl::StrJoin(contradictions, "; "));
}

absl::StatusOr<Json> ModelConfig(const proto::Model& model, const std::string& dtype) {
  const std::string reason = WhyInexpressible(model);
  if (!reason.empty()) return absl::InvalidArgumentError(reason);
  Json config = KeysOf(model);
  config["architectures"] = {ArchitectureOf(config["model_type"].get<std::string>())};
  config["torch_dtype"] = dtype;
  config["initializer_range"] = model.init_std();
  config["bos_token_id"] = nullptr;
  config["eos_token_id"] = nullptr;
  if (IsGpt(model)) {
    config["n_ctx"] = model.max_sequence();
    for (const char* const dropout : {"attn_pdrop", "embd_pdrop", "resid_pdrop"}) {
      config[dropout] = 0.0;
    }
  } else {
    config["max_position_embeddings"] = model.max_sequence();
    config["attention_dropout"] = 0.0;
    // Left out, the library takes a window and then warns that it will not be used.
    if (config.contains("use_sliding_window")) config["sliding_window"] = nullptr;
  }
  return config;
}

bool SameArchitecture(const Json& config, const proto::Model& model) {
  return config.value("model_type", Json()) == KeysOf(model)["model_type"];
}

std::vector<std::string> ConfigContradictions(const Json& config, const proto::Model& model) {
  std::vector<std::string> contradictions;
  const Json normal = Normalized(config);
  const Json keys = KeysOf(model);
  if (!SameArchitecture(config, model)) {
    return {absl::StrCat("model_type is ", normal.value("model_type", Json()).dump(), ", but ",
                         keys["model_type"].dump(), " in the job's model")};
  }
  for (const auto& [key, expected] : keys.items()) {
    const bool given = normal.contains(key);
    const Json value = given ? normal[key] : DefaultOf(key, model, normal);
    if (value == expected) continue;
    const std::string default_text = given ? "" : " (because the key is missing)";
    contradictions.push_back(absl::StrCat(key, " is ", value.dump(), default_text, ", but ",
                                          expected.dump(), " in the job's model"));
  }
  FindForeignSettings(normal, &contradictions);
  return contradictions;
}

}  // namespace planc
