// The files of Hugging Face folders, made and read without the code that is tested.
#ifndef PLANC_TESTS_HUGGINGFACE_FOLDER_FILES_H_
#define PLANC_TESTS_HUGGINGFACE_FOLDER_FILES_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "tests/run_files.h"

namespace planc {

// One tensor of a safetensors file.
struct RawTensor {
  std::string dtype;
  std::vector<int64_t> shape;
  std::string bytes;
};
using RawTensors = std::map<std::string, RawTensor>;

void WriteText(const std::string& path, const std::string& text);
RawTensors ReadRawTensors(const std::string& path);
void WriteRawTensors(const std::string& path, const RawTensors& tensors);
nlohmann::json ReadJsonFile(const std::string& path);

// What read_folder.py says about one tensor.
struct TensorDigest {
  std::string dtype;
  std::string shape;      // "[2,3]"
  uint64_t elements = 0;  // of the tensor
  uint64_t sum = 0;       // of the bit patterns as float32
  uint64_t weighted = 0;  // of position + 1 times the bit pattern
};

// The same of values, row-major.
void AddDigest(const std::vector<uint32_t>& bits, TensorDigest* digest);
// Runs read_folder.py. `code` becomes its exit status, or -1.
std::map<std::string, TensorDigest> RunReader(const std::string& folder, int* code);

}  // namespace planc

#endif  // PLANC_TESTS_HUGGINGFACE_FOLDER_FILES_H_
