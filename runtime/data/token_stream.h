#ifndef PLANC_RUNTIME_DATA_TOKEN_STREAM_H_
#define PLANC_RUNTIME_DATA_TOKEN_STREAM_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/data/mapped_file.h"
#include "runtime/data/token_code.h"
#include "schemas/job.pb.h"

namespace planc {

// The tokens of one file: a run of equally wide integers.
struct TokenFile {
  std::string name;  // path that was opened
  MappedFile file;
  TokenCode code = TokenCode::kU8;
  int64_t header_bytes = 0;  // before the first token
  bool described = false;    // by a header or an index: `code` is not only what the job says
  int64_t tokens = 0;
  int64_t first = 0;  // position of its first token in the stream

  const char* data() const { return file.data() + header_bytes; }
};

// A sentence about the first token of `file` that is negative or not below `vocab`, with the file,
// its offset (in tokens) and value. Empty when there is none. Reads all of the file.
std::string VocabularyDefect(const TokenFile& file, int64_t vocab);

// Memory-mapped token files, one after the other. Reading allocates nothing.
class TokenStream {
 public:
  // Opens files of `format`; `token_bytes` is the width in format TOKENS, for files without a
  // header (token_header.h). For MEGATRON each path names a pair PATH.bin, PATH.idx. Errors:
  // InvalidArgument naming each file that is something else (file_kind.h), or whose header or index
  // contradicts its size or `token_bytes`, and how to read it.
  static absl::StatusOr<std::unique_ptr<TokenStream>> Open(const std::vector<std::string>& paths,
                                                           proto::DataFormat format,
                                                           int64_t token_bytes,
                                                           const std::string& directory);

  int64_t tokens() const { return tokens_; }
  // Leaves out what the last file has beyond that many tokens of the stream.
  // REQUIRES: at least all of the files before it.
  void KeepFirst(int64_t tokens);
  const std::vector<TokenFile>& files() const { return files_; }

  // Copies tokens [first, first + count) of the stream, which may cross files. A token that does
  // not fit in int32 becomes -1.
  // REQUIRES: 0 <= first, first + count <= tokens().
  void Read(int64_t first, int64_t count, int32_t* out) const;
  // The same for tokens that something is computed with. Errors: DataLoss naming the file when a
  // token is not below `vocab`, with its offset (in tokens) and value, or the file was cut short.
  absl::Status ReadChecked(int64_t first, int64_t count, int64_t vocab, int32_t* out) const;

 private:
  // The file that holds a token. Empty files in between hold nothing.
  std::vector<TokenFile>::const_iterator FileOf(int64_t token) const;

  std::vector<TokenFile> files_;
  int64_t tokens_ = 0;
};

}  // namespace planc

#endif  // PLANC_RUNTIME_DATA_TOKEN_STREAM_H_
