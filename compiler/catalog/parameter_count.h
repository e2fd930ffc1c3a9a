#ifndef PLANC_COMPILER_CATALOG_PARAMETER_COUNT_H_
#define PLANC_COMPILER_CATALOG_PARAMETER_COUNT_H_

#include <cstdint>

#include "schemas/job.pb.h"

namespace planc {

// Number of trained weights of a dense model without padding, from its sizes:
//   V*H embedding (+ V*H projection unless tied), positions (gpt2, gpt3), L layers, final norm.
// REQUIRES: a resolved model of a dense family (llama, qwen2, qwen3, gpt2, gpt3).
int64_t ParameterCount(const proto::Model& model);

}  // namespace planc

#endif  // PLANC_COMPILER_CATALOG_PARAMETER_COUNT_H_
