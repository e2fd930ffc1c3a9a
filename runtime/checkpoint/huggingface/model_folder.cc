#include "runtime/checkpoint/huggingface/model_folder.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/bf16.h"
#include "runtime/checkpoint/huggingface/model_config.h"
#include "runtime/data/mapped_file.h"
#include "schemas/status.h"

namespace planc {
namespace {

constexpr char kConfigName[] = "config.json";
constexpr char kSingleName[] = "model.safetensors";
constexpr char kIndexFileName[] = "model.safetensors.index.json";

bool Exists(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

absl::StatusOr<Json> ReadJson(const std::string& path) {
  const absl::StatusOr<MappedFile> file = MappedFile::Open(path);
  if (!file.ok()) return absl::DataLossError(std::string(file.status().message()));
  Json json = Json::parse(file->data(), file->data() + file->size(), nullptr,
                          /*allow_exceptions=*/false);
  if (!json.is_object()) return absl::DataLossError(absl::StrCat(path, ": is not a JSON object"));
  return json;
}

absl::StatusOr<Json> ConfigOf(const std::string& folder) {
  const std::string path = absl::StrCat(folder, "/", kConfigName);
  if (!Exists(path)) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": does not exist, so ", folder, " is not a Hugging Face folder"));
  }
  return ReadJson(path);
}

// Files saved without the head of the model have names without its prefix.
std::string FullName(const std::string& name, bool gpt2) {
  if (!gpt2) return name;
  for (const char* const start : {"h.", "wte.", "wpe.", "ln_f."}) {
    if (name.compare(0, std::strlen(start), start) == 0) return "transformer." + name;
  }
  return name;
}

// Exact.
float HalfToFloat(uint16_t half) {
  const int exponent = (half >> 10) & 31;
  const int mantissa = half & 1023;
  const float sign = (half & 0x8000) != 0 ? -1.0f : 1.0f;
  if (exponent == 31) return mantissa == 0 ? sign * HUGE_VALF : std::nanf("");
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(mantissa), -24);
  return sign * std::ldexp(static_cast<float>(1024 + mantissa), exponent - 25);
}

// Converts all elements of a tensor; `data` need not be aligned.
template <typename Bits, typename Convert>
void ConvertAll(const char* data, int64_t count, Convert convert, float* out) {
  for (int64_t i = 0; i < count; ++i) {
    Bits bits;
    std::memcpy(&bits, data + i * static_cast<int64_t>(sizeof(Bits)), sizeof(Bits));
    out[i] = convert(bits);
  }
}

}  // namespace

absl::StatusOr<ModelFolder> ModelFolder::Open(const std::string& path) {
  ModelFolder folder(path);
  PLANC_RETURN_IF_ERROR(folder.ReadConfig());
  PLANC_RETURN_IF_ERROR(folder.OpenFiles());
  return folder;
}

absl::Status ModelFolder::ReadConfig() {
  PLANC_ASSIGN_OR_RETURN(config_, ConfigOf(path_));
  return absl::OkStatus();
}

absl::StatusOr<proto::Model> ModelOfFolder(const std::string& path) {
  PLANC_ASSIGN_OR_RETURN(const Json config, ConfigOf(path));
  absl::StatusOr<proto::Model> model = ModelOfConfig(config);
  if (model.ok()) return model;
  return absl::Status(model.status().code(),
                      absl::StrCat(path, "/", kConfigName, ": ", model.status().message()));
}

absl::Status ModelFolder::OpenFiles() {
  const std::string index = absl::StrCat(path_, "/", kIndexFileName);
  const bool single = Exists(absl::StrCat(path_, "/", kSingleName));
  if (single && Exists(index)) {
    return absl::InvalidArgumentError(absl::StrCat(path_, ": has both ", kSingleName, " and ",
                                                   kIndexFileName,
                                                   "; remove the one that is not meant"));
  }
  if (single) return OpenFile(kSingleName);
  if (Exists(index)) return OpenIndexed(index);
  return absl::InvalidArgumentError(
      absl::StrCat(path_, ": has neither ", kSingleName, " nor ", kIndexFileName));
}

absl::Status ModelFolder::OpenIndexed(const std::string& index_path) {
  PLANC_ASSIGN_OR_RETURN(const Json index, ReadJson(index_path));
  const Json* const weight_map = FindField(index, "weight_map");
  if (weight_map == nullptr || !weight_map->is_object()) {
    return absl::DataLossError(absl::StrCat(index_path, ": has no weight_map"));
  }
  const bool gpt2 = config_.value("model_type", Json()) == "gpt2";
  std::set<std::string> listed;
  for (const auto& [name, file] : weight_map->items()) {
    const std::string file_name = file.is_string() ? file.get<std::string>() : "";
    if (file_name.empty() || file_name.find('/') != std::string::npos) {
      return absl::DataLossError(
          absl::StrCat(index_path, ": ", name, " has no file name but ", file.dump()));
    }
    if (files_.count(file_name) == 0) PLANC_RETURN_IF_ERROR(OpenFile(file_name));
    const auto tensor = tensors_.find(FullName(name, gpt2));
    if (tensor == tensors_.end() || tensor->second.file != absl::StrCat(path_, "/", file_name)) {
      return absl::DataLossError(
          absl::StrCat(path_, "/", file_name, ": tensor ", name, " is missing"));
    }
    listed.insert(tensor->first);
  }
  for (const auto& [name, entry] : tensors_) {
    if (listed.count(name) != 0) continue;
    return absl::DataLossError(
        absl::StrCat(entry.file, ": tensor ", name, " is not in ", kIndexFileName));
  }
  return absl::OkStatus();
}

absl::Status ModelFolder::OpenFile(const std::string& name) {
  const std::string path = absl::StrCat(path_, "/", name);
  PLANC_ASSIGN_OR_RETURN(SafetensorsFile file,
                         SafetensorsFile::Open(path, SafetensorsFile::Types::kAll));
  const bool gpt2 = config_.value("model_type", Json()) == "gpt2";
  for (const auto& [key, tensor] : file.tensors()) {
    if (!tensors_.emplace(FullName(key, gpt2), Entry{path, tensor}).second) {
      return absl::DataLossError(absl::StrCat(path, ": tensor ", key, " is there twice"));
    }
  }
  files_.emplace(name, std::move(file));
  return absl::OkStatus();
}

bool ModelFolder::IsReadable(const Entry& entry) {
  const std::string& dtype = entry.tensor.dtype;
  return dtype == "F32" || dtype == "BF16" || dtype == "F16";
}

absl::Status ModelFolder::Read(const std::string& name, float* out) const {
  const Entry& entry = tensors_.at(name);
  const SafetensorsFile::Tensor& tensor = entry.tensor;
  int64_t count = 0;
  if (tensor.dtype == "F32") {
    count = tensor.bytes / static_cast<int64_t>(sizeof(float));
    std::memcpy(out, tensor.data, static_cast<size_t>(tensor.bytes));
  } else {
    count = tensor.bytes / static_cast<int64_t>(sizeof(uint16_t));
    if (tensor.dtype == "BF16") {
      const auto convert = [](uint16_t bits) { return ToFloat(Bf16{bits}); };
      ConvertAll<uint16_t>(tensor.data, count, convert, out);
    } else {
      ConvertAll<uint16_t>(tensor.data, count, HalfToFloat, out);
    }
  }
  for (int64_t i = 0; i < count; ++i) {
    if (std::isfinite(out[i])) continue;
    return absl::DataLossError(
        absl::StrCat(entry.file, ": tensor ", name, ": element ", i, " is not a finite number"));
  }
  return absl::OkStatus();
}

}  // namespace planc
