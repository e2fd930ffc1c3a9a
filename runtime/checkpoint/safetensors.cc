#include "runtime/checkpoint/safetensors.h"

#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "runtime/checkpoint/durable_file.h"
#include "runtime/checkpoint/json_fields.h"
#include "runtime/checkpoint/readable.h"
#include "runtime/checkpoint/tensor_exam.h"
#include "schemas/counted.h"
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

// Bytes of one element, or 0 for a type that the format does not have.
int64_t ElementBytes(const std::string& dtype) {
  static const auto* const sizes = new std::map<std::string, int64_t>{
      {"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"F8_E5M2", 1}, {"F8_E4M3", 1},
      {"I16", 2},  {"U16", 2}, {"F16", 2}, {"BF16", 2},    {"I32", 4},
      {"U32", 4},  {"F32", 4}, {"F64", 8}, {"I64", 8},     {"U64", 8}};
  const auto size = sizes->find(dtype);
  return size == sizes->end() ? 0 : size->second;
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

// Writes one tensor, takes its checksum and looks for values that are not finite, piece by piece,
// so that all but the first of these find the piece in the processor's cache.
absl::Status WriteTensor(const TensorData& tensor, const std::string& path, int64_t offset,
                         DurableFile* file, uint64_t* checksum) {
  constexpr int64_t kPiece = TensorExam::kPieceBytes / kFloatBytes;
  const int64_t elements = ElementsOf(tensor.shape);
  const std::string name = absl::StrCat("tensor ", tensor.key);
  TensorExam exam;
  for (int64_t done = 0; done < elements;) {
    const int64_t piece = std::min(elements - done, kPiece);
    exam.Add(tensor.data + done, piece);
    if (exam.first_non_finite() >= 0) {
      return NonFiniteElement(absl::StrCat(path, ": ", name), tensor.shape, tensor.offset,
                              exam.first_non_finite(), exam.non_finite_value());
    }
    PLANC_RETURN_IF_ERROR(
        file->Write(tensor.data + done, piece * kFloatBytes, offset + done * kFloatBytes, name));
    done += piece;
  }
  *checksum = exam.Checksum();
  return absl::OkStatus();
}

}  // namespace

uint64_t Checksum(const void* data, int64_t bytes) {
  return XXH3_64bits(data, static_cast<size_t>(bytes));
}

absl::Status WriteChecksummedSafetensors(const std::string& path,
                                         const std::vector<TensorData>& tensors,
                                         const MetadataOfChecksums& metadata,
                                         const FileSystem& files) {
  std::vector<uint64_t> checksums(tensors.size());
  // The tensors are written behind a header of this length, which comes last.
  const size_t length = HeaderText(tensors, metadata(checksums)).size();
  PLANC_ASSIGN_OR_RETURN(DurableFile file, DurableFile::Create(files, path));
  int64_t offset = kLengthBytes + static_cast<int64_t>(length);
  for (size_t i = 0; i < tensors.size(); ++i) {
    PLANC_RETURN_IF_ERROR(WriteTensor(tensors[i], path, offset, &file, &checksums[i]));
    offset += ElementsOf(tensors[i].shape) * kFloatBytes;
  }
  const std::string header = HeaderText(tensors, metadata(checksums));
  CHECK_EQ(header.size(), length) << "the length of the metadata depends on the checksums";
  const uint64_t header_bytes = length;
  PLANC_RETURN_IF_ERROR(file.Write(&header_bytes, kLengthBytes, 0, "the header"));
  PLANC_RETURN_IF_ERROR(
      file.Write(header.data(), static_cast<int64_t>(length), kLengthBytes, "the header"));
  return file.Finish();
}

absl::Status WriteSafetensors(const std::string& path, const std::vector<TensorData>& tensors,
                              const std::map<std::string, std::string>& metadata,
                              const FileSystem& files) {
  return WriteChecksummedSafetensors(
      path, tensors, [&](const std::vector<uint64_t>&) { return metadata; }, files);
}

absl::StatusOr<SafetensorsFile> SafetensorsFile::Open(const std::string& path, Types types) {
  SafetensorsFile result;
  PLANC_ASSIGN_OR_RETURN(result.file_, OpenPart(path));
  uint64_t length = 0;
  if (result.file_.size() < kLengthBytes) return Damaged(path, "no safetensors header");
  const absl::Status fetched = result.file_.Fetch(result.file_.data(), kLengthBytes);
  if (!fetched.ok()) return FetchFailure(path, fetched);
  std::memcpy(&length, result.file_.data(), kLengthBytes);
  if (length > static_cast<uint64_t>(result.file_.size() - kLengthBytes)) {
    return Damaged(path, absl::StrCat("header of ", Counted(absl::StrCat(length), "byte"),
                                      " in a file of ", result.file_.size()));
  }
  PLANC_RETURN_IF_ERROR(result.Parse(path, static_cast<int64_t>(length), types));
  return result;
}

absl::Status SafetensorsFile::Parse(const std::string& path, int64_t header_bytes, Types types) {
  const char* const text = file_.data() + kLengthBytes;
  const char* const data = text + header_bytes;
  const int64_t data_bytes = file_.size() - kLengthBytes - header_bytes;
  const absl::Status fetched = file_.Fetch(file_.data(), kLengthBytes + header_bytes);
  if (!fetched.ok()) return FetchFailure(path, fetched);
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
    std::vector<int64_t> offsets;
    if (!ReadField(entry, "dtype", &tensor.dtype) || !ReadField(entry, "shape", &tensor.shape) ||
        !ReadField(entry, "data_offsets", &offsets) || offsets.size() != 2) {
      return Damaged(path, absl::StrCat("tensor ", key, ": incomplete entry"));
    }
    const int64_t element_bytes = ElementBytes(tensor.dtype);
    if (element_bytes == 0 || (types == Types::kFloat32 && tensor.dtype != "F32")) {
      return Damaged(path, absl::StrCat("tensor ", key, " is of type ", tensor.dtype));
    }
    const int64_t elements = ElementsOf(tensor.shape);
    if (offsets[0] > offsets[1] || offsets[1] > data_bytes || elements < 0 ||
        elements > data_bytes / element_bytes ||
        offsets[1] - offsets[0] != elements * element_bytes) {
      return Damaged(
          path, absl::StrCat("tensor ", key, ": bytes ", offsets[0], " to ", offsets[1],
                             " do not hold its ", Counted(elements, "element"), ", or lie outside",
                             " the ", Counted(data_bytes, "byte"), " of data"));
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
    return Damaged(path, absl::StrCat(Counted(data_bytes, "byte"),
                                      " of data, but its tensors have ", reached));
  }
  return absl::OkStatus();
}

}  // namespace planc
