#include "runtime/checkpoint/safetensors.h"

#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/checkpoint/durable_file.h"
#include "runtime/checkpoint/json_fields.h"
#include "schemas/status.h"

namespace planc {
namespace {

constexpr int64_t kLengthBytes = 8;
constexpr int64_t kDataAlignment = 64;  // of the first tensor in the file
constexpr int64_t kFloatBytes = 4;

// Elements of a shape, or -1 when that does not fit.
int64_t ElementsOf(const std::vector<int64_t>& shape) {
  int64_t elements = 1;
  for (const int64_t size : shape) {
    if (__builtin_mul_overflow(elements, size, &elements)) return -1;
  }
  return elements;
}

absl::Status Damaged(const std::string& path, const std::string& what) {
  return absl::DataLossError(absl::StrCat(path, ": ", what));
}

std::string HeaderText(const std::vector<TensorData>& tensors,
                       const std::map<std::string, std::string>& metadata) {
  Json header = Json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  int64_t offset = 0;
  for (const TensorData& tensor : tensors) {
    const int64_t end = offset + ElementsOf(tensor.shape) * kFloatBytes;
    header[tensor.key] = {
        {"dtype", "F32"}, {"shape", tensor.shape}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = header.dump();
  const size_t past = (text.size() + kLengthBytes) % kDataAlignment;
  if (past != 0) text.append(kDataAlignment - past, ' ');
  return text;
}

}  // namespace

uint64_t Checksum(const void* data, int64_t bytes) {
  return XXH3_64bits(data, static_cast<size_t>(bytes));
}

absl::Status WriteSafetensors(const std::string& path, const std::vector<TensorData>& tensors,
                              const std::map<std::string, std::string>& metadata) {
  const std::string header = HeaderText(tensors, metadata);
  const uint64_t length = header.size();
  FilePieces pieces = {{&length, kLengthBytes},
                       {header.data(), static_cast<int64_t>(header.size())}};
  for (const TensorData& tensor : tensors) {
    pieces.emplace_back(tensor.data, ElementsOf(tensor.shape) * kFloatBytes);
  }
  return WriteDurably(path, pieces);
}

absl::StatusOr<SafetensorsFile> SafetensorsFile::Open(const std::string& path) {
  SafetensorsFile result;
  absl::StatusOr<MappedFile> file = MappedFile::Open(path);
  if (!file.ok()) return absl::DataLossError(file.status().message());
  result.file_ = *std::move(file);
  uint64_t length = 0;
  if (result.file_.size() < kLengthBytes) return Damaged(path, "no safetensors header");
  std::memcpy(&length, result.file_.data(), kLengthBytes);
  if (length > static_cast<uint64_t>(result.file_.size() - kLengthBytes)) {
    return Damaged(path,
                   absl::StrCat("header of ", length, " bytes in a file of ", result.file_.size()));
  }
  PLANC_RETURN_IF_ERROR(result.Parse(path, static_cast<int64_t>(length)));
  return result;
}

absl::Status SafetensorsFile::Parse(const std::string& path, int64_t header_bytes) {
  const char* const text = file_.data() + kLengthBytes;
  const char* const data = text + header_bytes;
  const int64_t data_bytes = file_.size() - kLengthBytes - header_bytes;
  header_checksum_ = Checksum(file_.data(), kLengthBytes + header_bytes);
  const Json header = Json::parse(text, data, nullptr, /*allow_exceptions=*/false);
  if (!header.is_object()) return Damaged(path, "the header is not a JSON object");
  std::vector<std::pair<int64_t, int64_t>> ranges;
  for (const auto& [key, entry] : header.items()) {
    if (key == "__metadata__") {
      for (const auto& [name, value] : entry.items()) {
        if (value.is_string()) metadata_[name] = value.get<std::string>();
      }
      continue;
    }
    Tensor tensor;
    std::string dtype;
    std::vector<int64_t> offsets;
    if (!ReadField(entry, "dtype", &dtype) || !ReadField(entry, "shape", &tensor.shape) ||
        !ReadField(entry, "data_offsets", &offsets) || offsets.size() != 2) {
      return Damaged(path, absl::StrCat("tensor ", key, ": incomplete entry"));
    }
    if (dtype != "F32") return Damaged(path, absl::StrCat("tensor ", key, " is of type ", dtype));
    const int64_t elements = ElementsOf(tensor.shape);
    if (offsets[0] > offsets[1] || offsets[1] > data_bytes || elements < 0 ||
        elements > data_bytes / kFloatBytes || offsets[1] - offsets[0] != elements * kFloatBytes) {
      return Damaged(path, absl::StrCat("tensor ", key, ": bytes ", offsets[0], " to ", offsets[1],
                                        " do not hold its ", elements, " elements, or lie outside",
                                        " the ", data_bytes, " bytes of data"));
    }
    tensor.data = data + offsets[0];
    tensor.bytes = offsets[1] - offsets[0];
    ranges.emplace_back(offsets[0], offsets[1]);
    tensors_[key] = std::move(tensor);
  }
  std::sort(ranges.begin(), ranges.end());
  int64_t reached = 0;
  for (const auto& [begin, end] : ranges) {
    if (begin != reached) return Damaged(path, "tensors overlap or leave gaps");
    reached = end;
  }
  if (reached != data_bytes) {
    return Damaged(path,
                   absl::StrCat(data_bytes, " bytes of data, but its tensors have ", reached));
  }
  return absl::OkStatus();
}

}  // namespace planc
