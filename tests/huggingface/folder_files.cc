#include "tests/huggingface/folder_files.h"

#include <sys/wait.h>

#include <cstdlib>
#include <cstring>
#include <fstream>

namespace planc {

void WriteText(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

RawTensors ReadRawTensors(const std::string& path) {
  const std::string text = ReadText(path);
  uint64_t length = 0;
  std::memcpy(&length, text.data(), sizeof(length));
  const auto header = nlohmann::json::parse(text.substr(sizeof(length), length));
  RawTensors tensors;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") continue;
    const size_t begin = entry["data_offsets"][0];
    const size_t end = entry["data_offsets"][1];
    tensors[name] = {entry["dtype"], entry["shape"],
                     text.substr(sizeof(length) + length + begin, end - begin)};
  }
  return tensors;
}

void WriteRawTensors(const std::string& path, const RawTensors& tensors) {
  nlohmann::json header;
  std::string data;
  for (const auto& [name, tensor] : tensors) {
    header[name] = {{"dtype", tensor.dtype},
                    {"shape", tensor.shape},
                    {"data_offsets", {data.size(), data.size() + tensor.bytes.size()}}};
    data += tensor.bytes;
  }
  const std::string text = header.dump();
  const uint64_t length = text.size();
  WriteText(path,
            std::string(reinterpret_cast<const char*>(&length), sizeof(length)) + text + data);
}

nlohmann::json ReadJsonFile(const std::string& path) {
  return nlohmann::json::parse(ReadText(path));
}

void AddDigest(const std::vector<uint32_t>& bits, TensorDigest* digest) {
  digest->elements = bits.size();
  for (size_t i = 0; i < bits.size(); ++i) {
    digest->sum += bits[i];
    digest->weighted += (i + 1) * bits[i];
  }
}

std::map<std::string, TensorDigest> RunReader(const std::string& folder, int* code) {
  const std::string output = folder + ".digests";
  const int status =
      std::system(("python3 tests/huggingface/read_folder.py " + folder + " > " + output).c_str());
  *code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  std::map<std::string, TensorDigest> digests;
  std::ifstream lines(output);
  std::string name;
  while (lines >> name) {
    TensorDigest& digest = digests[name];
    lines >> digest.dtype >> digest.shape >> digest.elements >> digest.sum >> digest.weighted;
  }
  return digests;
}

}  // namespace planc
