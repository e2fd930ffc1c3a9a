#ifndef PLANC_RUNTIME_TOKENIZER_TOKENIZER_H_
#define PLANC_RUNTIME_TOKENIZER_TOKENIZER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace planc {

// What one thread remembers between two texts.
struct EncodeCache {
  std::unordered_map<std::string, std::vector<int32_t>> words;
};

// Text to token numbers and back. Const functions may be called by several threads at once.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // Appends the tokens of `text`, with those that the tokenizer puts around every text. Errors:
  // InvalidArgument when `text` is not UTF-8, or has a character that no token stands for.
  virtual absl::Status Encode(const std::string& text, EncodeCache* cache,
                              std::vector<int32_t>* tokens) const = 0;
  // The text of tokens; not UTF-8 where they are cut inside a character. Special tokens are written
  // as they are named; numbers that no token has as nothing.
  virtual std::string Decode(const std::vector<int32_t>& tokens) const = 0;
  // Least size of a vocabulary that holds all tokens: the largest number and one.
  virtual int64_t vocab() const = 0;
  // The number of the token that is written so.
  virtual std::optional<int32_t> FindToken(const std::string& text) const = 0;
  // The token that ends a document, where the tokenizer itself says which one that is.
  virtual std::optional<int32_t> EndOfDocument() const = 0;
};

// Reads a Hugging Face tokenizer.json or a SentencePiece .model; which one it is, its first byte
// says. Errors: InvalidArgument naming the file and, in a tokenizer.json, the first part that this
// program does not carry out.
absl::StatusOr<std::unique_ptr<Tokenizer>> LoadTokenizer(const std::string& path);

}  // namespace planc

#endif  // PLANC_RUNTIME_TOKENIZER_TOKENIZER_H_
