#ifndef PLANC_RUNTIME_CHECKPOINT_HUGGINGFACE_MODEL_CONFIG_H_
#define PLANC_RUNTIME_CHECKPOINT_HUGGINGFACE_MODEL_CONFIG_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"
#include "schemas/job.pb.h"

namespace planc {

// The config.json that describes `model` as planc computes it: rotary embedding without scaling,
// full attention, no dropout. It names no tokens, because planc knows no tokenizer. `dtype`:
// "float32" or "bfloat16". Errors: InvalidArgument for a model that no supported architecture
// describes, naming the reason.
absl::StatusOr<nlohmann::json> ModelConfig(const proto::Model& model, const std::string& dtype);

// Whether a config.json names the architecture that ModelConfig(model) does.
bool SameArchitecture(const nlohmann::json& config, const proto::Model& model);

// The model that a config.json, an object, describes; max_sequence included, no preset. The inverse
// of ModelConfig. Errors: InvalidArgument, with everything that is missing or that planc does not
// compute: another architecture, scaled rotary embedding, sliding windows, quantized weights.
absl::StatusOr<proto::Model> ModelOfConfig(const nlohmann::json& config);

// One sentence for each value of a config.json, an object, that describes another model than
// `model`, naming both values. A key that is missing has the value that the transformers library
// takes then. Of another architecture that is all that is said. REQUIRES: ModelConfig(model)
// succeeds.
std::vector<std::string> ConfigContradictions(const nlohmann::json& config,
                                              const proto::Model& model);

}  // namespace planc

#endif  // PLANC_RUNTIME_CHECKPOINT_HUGGINGFACE_MODEL_CONFIG_H_
