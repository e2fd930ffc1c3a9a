#ifndef PLANC_RUNTIME_TOKENIZER_BYTE_PAIRS_H_
#define PLANC_RUNTIME_TOKENIZER_BYTE_PAIRS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace planc {

// A vocabulary of pieces and an ordered list of merges (Sennrich, Haddow and Birch, "Neural machine
// translation of rare words with subword units", ACL 2016).
class BytePairModel {
 public:
  struct Options {
    bool byte_fallback = false;  // a character without a token becomes tokens <0x00> to <0xFF>
    bool fuse_unknown = false;   // several unknown characters in a row are one
    bool ignore_merges = false;  // a word that is a token itself is taken whole
    std::string unknown;         // the token of unknown characters; empty: there is none
  };

  // Errors: InvalidArgument for a merge whose parts or result are no tokens.
  static absl::StatusOr<BytePairModel> Create(
      std::unordered_map<std::string, int32_t> vocab,
      const std::vector<std::pair<std::string, std::string>>& merges, Options options);

  // Appends the tokens of one word: starting from its characters, the earliest merge of the list
  // that applies is carried out, the leftmost first, until none does. O(n log n). Errors:
  // InvalidArgument for a character that no token stands for.
  absl::Status Encode(std::string_view word, std::vector<int32_t>* tokens) const;

  std::optional<int32_t> Find(const std::string& piece) const;
  const std::unordered_map<std::string, int32_t>& vocab() const { return vocab_; }

 private:
  struct Merge {
    int32_t rank = 0;
    int32_t result = 0;
  };
  struct Symbol {
    int32_t token = 0;
    int32_t previous = 0;  // -1: the first
    int32_t next = 0;      // -1: the last
  };

  absl::Status Start(std::string_view word, std::vector<Symbol>* symbols) const;
  // Appends <0x..> tokens for a character; false when the vocabulary has not all of them.
  bool AppendBytes(std::string_view character, std::vector<int32_t>* tokens) const;
  const Merge* FindMerge(int32_t left, int32_t right) const;

  std::unordered_map<std::string, int32_t> vocab_;
  std::unordered_map<uint64_t, Merge> merges_;  // by left token << 32 | right token
  Options options_;
};

}  // namespace planc

#endif  // PLANC_RUNTIME_TOKENIZER_BYTE_PAIRS_H_
