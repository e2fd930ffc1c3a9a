#ifndef PLANC_RUNTIME_TOKENIZER_TOKEN_WRITER_H_
#define PLANC_RUNTIME_TOKENIZER_TOKEN_WRITER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/checkpoint/durable_file.h"
#include "runtime/data/token_code.h"

namespace planc {

// Writes a flat token file, or a Megatron pair, under temporary names beside the right ones.
// Errors: Internal naming path and the system's reason.
class TokenWriter {
 public:
  // `output` as in TokenizeOptions.
  static absl::StatusOr<std::unique_ptr<TokenWriter>> Create(const std::string& output,
                                                             bool megatron, TokenCode code);
  // Removes what was written, unless Finish succeeded.
  ~TokenWriter();
  TokenWriter(const TokenWriter&) = delete;
  TokenWriter& operator=(const TokenWriter&) = delete;

  // Appends documents that have `lengths` tokens each. REQUIRES: all fit in `code`.
  absl::Status Append(const std::vector<int32_t>& tokens, const std::vector<int64_t>& lengths);
  // Waits until all is on the disk and gives the files their names, the index last.
  absl::Status Finish();

 private:
  TokenWriter(std::string output, bool megatron, TokenCode code);
  absl::Status WriteIndex() const;

  const std::string bin_;    // the final name
  const std::string index_;  // empty: flat
  const TokenCode code_;
  const HostFileSystem files_;  // outlives file_
  std::unique_ptr<DurableFile> file_;
  int64_t offset_ = 0;
  std::vector<int32_t> lengths_;  // of the documents of a pair
  std::vector<char> buffer_;
};

}  // namespace planc

#endif  // PLANC_RUNTIME_TOKENIZER_TOKEN_WRITER_H_
