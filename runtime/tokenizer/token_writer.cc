#include "runtime/tokenizer/token_writer.h"

#include <filesystem>
#include <limits>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "schemas/status.h"

namespace planc {
namespace {

constexpr char kTemporary[] = ".partial";

template <typename T>
void AppendRaw(T value, std::vector<char>* bytes) {
  const char* const begin = reinterpret_cast<const char*>(&value);
  bytes->insert(bytes->end(), begin, begin + sizeof(value));
}

std::string FolderOf(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? std::string(1, '.') : folder;
}

}  // namespace

TokenWriter::TokenWriter(std::string output, bool megatron, TokenCode code)
    : bin_(megatron ? output + ".bin" : output),
      index_(megatron ? output + ".idx" : ""),
      code_(code) {}

absl::StatusOr<std::unique_ptr<TokenWriter>> TokenWriter::Create(const std::string& output,
                                                                 bool megatron, TokenCode code) {
  std::unique_ptr<TokenWriter> writer(new TokenWriter(output, megatron, code));
  PLANC_ASSIGN_OR_RETURN(DurableFile file,
                         DurableFile::Create(writer->files_, writer->bin_ + kTemporary));
  writer->file_ = std::make_unique<DurableFile>(std::move(file));
  return writer;
}

TokenWriter::~TokenWriter() {
  if (file_ == nullptr) return;
  file_.reset();
  std::error_code ignored;
  std::filesystem::remove(bin_ + kTemporary, ignored);
  if (!index_.empty()) std::filesystem::remove(index_ + kTemporary, ignored);
}

absl::Status TokenWriter::Append(const std::vector<int32_t>& tokens,
                                 const std::vector<int64_t>& lengths) {
  buffer_.clear();
  WithTokenType(code_, [&](auto zero) {
    using T = decltype(zero);
    for (const int32_t token : tokens) AppendRaw(static_cast<T>(token), &buffer_);
  });
  const int64_t bytes = static_cast<int64_t>(buffer_.size());
  PLANC_RETURN_IF_ERROR(file_->Write(buffer_.data(), bytes, offset_, "tokens"));
  offset_ += bytes;
  if (index_.empty()) return absl::OkStatus();
  for (const int64_t length : lengths) {
    if (length > std::numeric_limits<int32_t>::max()) {
      return absl::InvalidArgumentError(
          absl::StrCat("a document has ", length, " tokens; Megatron's index holds 2^31 - 1"));
    }
    lengths_.push_back(static_cast<int32_t>(length));
  }
  return absl::OkStatus();
}

// See ReadMegatronIndex for the layout.
absl::Status TokenWriter::WriteIndex() const {
  std::vector<char> bytes = {'M', 'M', 'I', 'D', 'I', 'D', 'X', 0, 0};
  const int64_t count = static_cast<int64_t>(lengths_.size());
  AppendRaw<uint64_t>(1, &bytes);
  bytes.push_back(code_ == TokenCode::kU16 ? 8 : 4);
  AppendRaw(count, &bytes);
  AppendRaw(count + 1, &bytes);
  for (const int32_t length : lengths_) AppendRaw(length, &bytes);
  int64_t offset = 0;
  for (const int32_t length : lengths_) {
    AppendRaw(offset, &bytes);
    offset += length * TokenBytes(code_);
  }
  for (int64_t document = 0; document <= count; ++document) AppendRaw(document, &bytes);
  return WriteDurably(index_ + kTemporary, {{bytes.data(), static_cast<int64_t>(bytes.size())}});
}

absl::Status TokenWriter::Finish() {
  PLANC_RETURN_IF_ERROR(file_->Finish());
  if (!index_.empty()) PLANC_RETURN_IF_ERROR(WriteIndex());
  PLANC_RETURN_IF_ERROR(RenamePath(bin_ + kTemporary, bin_));
  if (!index_.empty()) PLANC_RETURN_IF_ERROR(RenamePath(index_ + kTemporary, index_));
  file_.reset();
  return SyncDirectory(FolderOf(bin_));
}

}  // namespace planc
