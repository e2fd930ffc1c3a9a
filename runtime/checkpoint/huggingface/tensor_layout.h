#ifndef PLANC_RUNTIME_CHECKPOINT_HUGGINGFACE_TENSOR_LAYOUT_H_
#define PLANC_RUNTIME_CHECKPOINT_HUGGINGFACE_TENSOR_LAYOUT_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "runtime/checkpoint/manifest.h"

namespace planc {

// A tensor of a Hugging Face folder and the parameters it is made of: one, or GPT-2's queries, keys
// and values, joined along the last dimension.
struct FolderTensor {
  std::string name;
  std::vector<int64_t> shape;
  bool transposed = false;              // each parameter is transposed before it is joined
  std::vector<std::string> parameters;  // full names
};

// The tensors that hold these parameters, each in one of them, by name.
// REQUIRES: parameters that are joined have equal shapes.
std::vector<FolderTensor> FolderTensors(const std::map<std::string, SavedParameter>& parameters);

// Copies the values of parameter `index` of `tensor`, row-major, to their places in `joined`, which
// holds the whole tensor.
void JoinParameter(const FolderTensor& tensor, size_t index, const float* parameter, float* joined);
// The inverse.
void SplitParameter(const FolderTensor& tensor, size_t index, const float* joined,
                    float* parameter);

}  // namespace planc

#endif  // PLANC_RUNTIME_CHECKPOINT_HUGGINGFACE_TENSOR_LAYOUT_H_
