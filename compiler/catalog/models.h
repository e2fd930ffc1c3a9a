#ifndef PLANC_COMPILER_CATALOG_MODELS_H_
#define PLANC_COMPILER_CATALOG_MODELS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "schemas/job.pb.h"

namespace planc {

// A published model: every size of model.* except init_std, which is a training choice.
struct ModelPreset {
  std::string name;
  proto::Model model;
  int64_t parameters = 0;  // exact
};

// The rows of models.def, in its order.
const std::vector<ModelPreset>& ModelPresets();

// The preset called `name`, or nullptr.
const ModelPreset* FindModelPreset(const std::string& name);

// The presets that people call `name`, which may be a Hugging Face name: "gpt2",
// "meta-llama/Llama-3.1-8B-Instruct". Empty for a name that says nothing.
std::vector<std::string> ModelPresetsCalled(const std::string& name);

}  // namespace planc

#endif  // PLANC_COMPILER_CATALOG_MODELS_H_
