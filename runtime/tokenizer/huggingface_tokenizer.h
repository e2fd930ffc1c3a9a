#ifndef PLANC_RUNTIME_TOKENIZER_HUGGINGFACE_TOKENIZER_H_
#define PLANC_RUNTIME_TOKENIZER_HUGGINGFACE_TOKENIZER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/tokenizer/added_tokens.h"
#include "runtime/tokenizer/byte_pairs.h"
#include "runtime/tokenizer/pieces.h"
#include "runtime/tokenizer/tokenizer.h"

namespace planc {

struct NormalizeStep {
  enum class Kind { kCompose, kPrepend, kReplace };
  Kind kind;
  std::string from;  // kReplace
  std::string text;  // what is put before or instead
};

struct DecodeStep {
  enum class Kind { kByteLevel, kReplace, kByteFallback, kFuse, kStrip, kMetaspace };
  Kind kind;
  std::string from;    // kReplace, kStrip (one character), kMetaspace
  std::string text;    // kReplace
  int64_t start = 0;   // kStrip: at most so many at the beginning
  int64_t stop = 0;    // and at the end
  bool drops = false;  // kMetaspace: those of the first token are dropped
};

// What a tokenizer.json says, as far as it is carried out.
struct TokenizerParts {
  BytePairModel model;
  std::vector<AddedToken> raw_tokens;         // looked for in the text as it is
  std::vector<AddedToken> normalized_tokens;  // looked for after normalization
  std::vector<NormalizeStep> normalizers;
  std::vector<std::unique_ptr<PieceSplitter>> splitters;
  std::vector<int32_t> before;  // tokens put around every text
  std::vector<int32_t> after;
  std::optional<std::vector<DecodeStep>> decoders;  // nothing: tokens are joined with blanks
};

// Byte-pair tokenizers of Hugging Face's library `tokenizers`, with its results.
class HuggingFaceTokenizer : public Tokenizer {
 public:
  static absl::StatusOr<std::unique_ptr<HuggingFaceTokenizer>> Create(TokenizerParts parts);

  absl::Status Encode(const std::string& text, EncodeCache* cache,
                      std::vector<int32_t>* tokens) const override;
  std::string Decode(const std::vector<int32_t>& tokens) const override;
  int64_t vocab() const override { return vocab_; }
  std::optional<int32_t> FindToken(const std::string& text) const override;
  std::optional<int32_t> EndOfDocument() const override;

 private:
  HuggingFaceTokenizer(TokenizerParts parts, AddedTokens raw, AddedTokens normalized);
  absl::Status EncodePart(const TextPart& part, EncodeCache* cache,
                          std::vector<int32_t>* tokens) const;
  absl::Status EncodeWord(const std::string& word, EncodeCache* cache,
                          std::vector<int32_t>* tokens) const;

  const TokenizerParts parts_;
  const AddedTokens raw_;
  const AddedTokens normalized_;
  std::unordered_map<int32_t, std::string> texts_;  // of all tokens
  std::map<std::string, int32_t> added_;
  int64_t vocab_ = 0;
};

// Reads the text of a tokenizer.json. Errors: InvalidArgument naming what is malformed, or which
// part this program does not carry out; nothing in the file is ignored that changes tokens.
absl::StatusOr<std::unique_ptr<Tokenizer>> ParseTokenizerJson(const std::string& text);

}  // namespace planc

#endif  // PLANC_RUNTIME_TOKENIZER_HUGGINGFACE_TOKENIZER_H_
