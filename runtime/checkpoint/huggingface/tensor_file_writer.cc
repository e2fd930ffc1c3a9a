#include "runtime/checkpoint/huggingface/tensor_file_writer.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "kernels/bf16.h"
#include "runtime/checkpoint/json_fields.h"
#include "schemas/status.h"

namespace planc {
namespace {

constexpr int64_t kLengthBytes = 8;
constexpr int64_t kDataAlignment = 64;        // of the first tensor in the file
constexpr int64_t kPiece = int64_t{1} << 18;  // values rounded at a time

int64_t ElementsOf(const std::vector<int64_t>& shape) {
  int64_t elements = 1;
  for (const int64_t size : shape) elements *= size;
  return elements;
}

}  // namespace

int64_t ElementBytes(ExportType type) { return type == ExportType::kF32 ? 4 : 2; }

std::vector<std::vector<size_t>> SplitOverFiles(const std::vector<TensorName>& tensors,
                                                ExportType type, int64_t most_bytes) {
  std::vector<std::vector<size_t>> files;
  int64_t file_bytes = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const int64_t bytes = ElementsOf(tensors[i].shape) * ElementBytes(type);
    if (files.empty() || file_bytes + bytes > most_bytes) {
      files.emplace_back();
      file_bytes = 0;
    }
    files.back().push_back(i);
    file_bytes += bytes;
  }
  return files;
}

absl::StatusOr<TensorFileWriter> TensorFileWriter::Create(const FileSystem& files,
                                                          const std::string& path,
                                                          const std::vector<TensorName>& tensors,
                                                          ExportType type) {
  // Programs of the transformers library refuse a file that does not say this.
  Json header = {{"__metadata__", {{"format", "pt"}}}};
  int64_t offset = 0;
  for (const TensorName& tensor : tensors) {
    const int64_t end = offset + ElementsOf(tensor.shape) * ElementBytes(type);
    header[tensor.name] = {{"dtype", type == ExportType::kF32 ? "F32" : "BF16"},
                           {"shape", tensor.shape},
                           {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = header.dump();
  const size_t past = (text.size() + kLengthBytes) % kDataAlignment;
  if (past != 0) text.append(kDataAlignment - past, ' ');
  const uint64_t length = text.size();
  const int64_t begin = kLengthBytes + static_cast<int64_t>(length);
  PLANC_ASSIGN_OR_RETURN(DurableFile file, DurableFile::Create(files, path));
  PLANC_RETURN_IF_ERROR(file.Write(&length, kLengthBytes, 0, "the header"));
  PLANC_RETURN_IF_ERROR(
      file.Write(text.data(), static_cast<int64_t>(length), kLengthBytes, "the header"));
  return TensorFileWriter(std::move(file), type, begin, begin + offset);
}

absl::Status TensorFileWriter::Append(const float* values, int64_t count, const std::string& what) {
  if (type_ == ExportType::kF32) {
    const int64_t bytes = count * ElementBytes(type_);
    PLANC_RETURN_IF_ERROR(file_.Write(values, bytes, at_, what));
    at_ += bytes;
    return absl::OkStatus();
  }
  std::vector<Bf16> rounded(static_cast<size_t>(std::min(count, kPiece)));
  for (int64_t done = 0; done < count;) {
    const int64_t piece = std::min(count - done, kPiece);
    std::transform(values + done, values + done + piece, rounded.begin(),
                   [](float value) { return ToBf16(value); });
    const auto infinite = std::find_if(rounded.begin(), rounded.begin() + piece,
                                       [](Bf16 value) { return !std::isfinite(ToFloat(value)); });
    if (infinite != rounded.begin() + piece) {
      return absl::OutOfRangeError(
          absl::StrCat(what, ": ", values[done + (infinite - rounded.begin())],
                       " is beyond the numbers of bf16; export it as f32"));
    }
    const int64_t bytes = piece * ElementBytes(type_);
    PLANC_RETURN_IF_ERROR(file_.Write(rounded.data(), bytes, at_, what));
    at_ += bytes;
    done += piece;
  }
  return absl::OkStatus();
}

absl::Status TensorFileWriter::Finish() {
  CHECK_EQ(at_, end_) << "values are missing";
  return file_.Finish();
}

}  // namespace planc
