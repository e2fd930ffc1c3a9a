#ifndef PLANC_RUNTIME_TOKENIZER_TOKENIZE_FILES_H_
#define PLANC_RUNTIME_TOKENIZER_TOKENIZE_FILES_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/data/token_code.h"
#include "runtime/tokenizer/tokenizer.h"

namespace planc {

struct TokenizeProgress {
  int64_t bytes_done = 0;  // of the inputs
  int64_t bytes = 0;
  int64_t tokens = 0;
};

struct TokenizeOptions {
  // Text files, one document each, and JSON lines (.jsonl, .ndjson, .json, or any file where
  // `all_json`), one document a line.
  std::vector<std::string> inputs;
  bool all_json = false;
  std::string json_key = "text";           // of the member that holds the document
  std::optional<int32_t> end_of_document;  // appended to each document
  bool megatron = false;                   // else a flat file
  // A flat file's path; of a Megatron pair without .bin and .idx.
  std::string output;
  int workers = 1;
  std::function<void(const TokenizeProgress&)> progress;  // may be empty
};

struct TokenizeSummary {
  int64_t documents = 0;  // that are not empty; empty ones are left out
  int64_t empty = 0;
  int64_t tokens = 0;
  TokenCode code = TokenCode::kU16;
};

// Writes the tokens of all documents, in the order of `inputs`: the same bytes for any number of
// workers. Flat: uint16 where the tokenizer's vocabulary has at most 65536 tokens, else uint32,
// without a header. Megatron: uint16 below 65500 tokens, else int32, as Megatron chooses, and one
// sequence for each document. Files appear under their names when they are whole; on an error none
// does. Errors: InvalidArgument naming file and line for inputs, Internal naming path and the
// system's reason for outputs.
absl::StatusOr<TokenizeSummary> TokenizeFiles(const Tokenizer& tokenizer,
                                              const TokenizeOptions& options);

}  // namespace planc

#endif  // PLANC_RUNTIME_TOKENIZER_TOKENIZE_FILES_H_
