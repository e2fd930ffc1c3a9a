#include "runtime/checkpoint/huggingface/tensor_layout.h"

#include <algorithm>
#include <utility>

namespace planc {
namespace {

constexpr int64_t kTile = 32;  // rows and columns that a transposition handles at a time

// The name of the tensor that holds a parameter: GPT-2's queries, keys and values share one.
std::string NameOfTensor(const std::string& parameter) {
  const std::string joined = ".attn.c_attn.";
  const size_t at = parameter.find(joined);
  if (at == std::string::npos) return parameter;
  const size_t kind = at + joined.size();  // "q.", "k." or "v."
  return parameter.substr(0, kind) + parameter.substr(kind + 2);
}

// Calls `visit(place in the joined tensor, place in the parameter)` for each element.
template <typename Visit>
void ForEachElement(const FolderTensor& tensor, size_t index, Visit visit) {
  const int64_t total = tensor.shape.back();
  const int64_t columns = total / static_cast<int64_t>(tensor.parameters.size());
  const int64_t first = static_cast<int64_t>(index) * columns;
  int64_t rows = 1;
  for (size_t d = 0; d + 1 < tensor.shape.size(); ++d) rows *= tensor.shape[d];
  if (!tensor.transposed) {
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t column = 0; column < columns; ++column) {
        visit(row * total + first + column, row * columns + column);
      }
    }
    return;
  }
  for (int64_t row_tile = 0; row_tile < rows; row_tile += kTile) {
    const int64_t row_end = std::min(row_tile + kTile, rows);
    for (int64_t tile = 0; tile < columns; tile += kTile) {
      const int64_t end = std::min(tile + kTile, columns);
      for (int64_t row = row_tile; row < row_end; ++row) {
        for (int64_t column = tile; column < end; ++column) {
          visit(row * total + first + column, column * rows + row);
        }
      }
    }
  }
}

}  // namespace

std::vector<FolderTensor> FolderTensors(const std::map<std::string, SavedParameter>& parameters) {
  std::map<std::string, FolderTensor> tensors;
  // Sorted by name, "k" would stand before "q": the order of the joined tensor is q, k, v.
  for (const char* const kind : {"q", "k", "v"}) {
    for (const auto& [name, parameter] : parameters) {
      const bool joined = NameOfTensor(name) != name;
      const bool chosen = joined
                              ? name.find(std::string(".c_attn.") + kind + ".") != std::string::npos
                              : *kind == 'q';
      if (!chosen) continue;
      FolderTensor& tensor = tensors[NameOfTensor(name)];
      tensor.name = NameOfTensor(name);
      tensor.transposed = parameter.transposed;
      std::vector<int64_t> shape = parameter.shape;
      if (tensor.transposed) std::reverse(shape.begin(), shape.end());
      if (tensor.shape.empty()) {
        tensor.shape = shape;
      } else {
        tensor.shape.back() += shape.back();
      }
      tensor.parameters.push_back(name);
    }
  }
  std::vector<FolderTensor> list;
  for (auto& [name, tensor] : tensors) list.push_back(std::move(tensor));
  return list;
}

void JoinParameter(const FolderTensor& tensor, size_t index, const float* parameter,
                   float* joined) {
  ForEachElement(tensor, index,
                 [&](int64_t place, int64_t own) { joined[place] = parameter[own]; });
}

void SplitParameter(const FolderTensor& tensor, size_t index, const float* joined,
                    float* parameter) {
  ForEachElement(tensor, index,
                 [&](int64_t place, int64_t own) { parameter[own] = joined[place]; });
}

}  // namespace planc
