#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/data/mapped_file.h"
#include "runtime/tokenizer/huggingface_tokenizer.h"
#include "runtime/tokenizer/sentencepiece_model.h"
#include "runtime/tokenizer/tokenizer.h"
#include "runtime/tokenizer/utf8.h"
#include "schemas/status.h"

namespace planc {
namespace {

class SentencePieceTokenizer : public Tokenizer {
 public:
  explicit SentencePieceTokenizer(std::unique_ptr<SentencePieceModel> model)
      : model_(std::move(model)) {}

  absl::Status Encode(const std::string& text, EncodeCache* /*cache*/,
                      std::vector<int32_t>* tokens) const override {
    PLANC_RETURN_IF_ERROR(CheckUtf8(text));
    std::vector<int> encoded;
    std::string error;
    if (!model_->Encode(text, &encoded, &error)) {
      return absl::InvalidArgumentError(absl::StrCat("SentencePiece: ", error));
    }
    tokens->insert(tokens->end(), encoded.begin(), encoded.end());
    return absl::OkStatus();
  }

  std::string Decode(const std::vector<int32_t>& tokens) const override {
    std::vector<int> known;
    for (const int32_t token : tokens) {
      if (token >= 0 && token < model_->size()) known.push_back(token);
    }
    return model_->Decode(known);
  }

  int64_t vocab() const override { return model_->size(); }
  std::optional<int32_t> FindToken(const std::string& text) const override {
    return Known(model_->Find(text));
  }
  std::optional<int32_t> EndOfDocument() const override { return Known(model_->eos()); }

 private:
  static std::optional<int32_t> Known(int token) {
    return token < 0 ? std::nullopt : std::optional<int32_t>(token);
  }

  const std::unique_ptr<SentencePieceModel> model_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Tokenizer>> LoadTokenizer(const std::string& path) {
  PLANC_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  const std::string bytes(file.data(), static_cast<size_t>(file.size()));
  const size_t first = bytes.find_first_not_of(" \t\r\n");
  if (first != std::string::npos && bytes[first] == '{') {
    absl::StatusOr<std::unique_ptr<Tokenizer>> tokenizer = ParseTokenizerJson(bytes);
    if (!tokenizer.ok()) return WithContext(tokenizer.status(), path);
    return tokenizer;
  }
  // A model is a message of Protocol Buffers whose first field is the list of pieces.
  std::string error;
  std::unique_ptr<SentencePieceModel> model;
  if (!bytes.empty() && bytes[0] == '\n') model = LoadSentencePiece(bytes, &error);
  if (model == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": is neither a tokenizer.json nor a SentencePiece model",
                     error.empty() ? "" : absl::StrCat(" (", error, ")")));
  }
  return std::make_unique<SentencePieceTokenizer>(std::move(model));
}

}  // namespace planc
