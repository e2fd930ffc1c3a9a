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
  int64_t tokens = 0;
  int64_t first = 0;  // position of its first token in the stream
};

// Memory-mapped token files, one after the other. Reading allocates nothing.
class TokenStream {
 public:
  // Opens files of `format`; `token_bytes` is the width in format TOKENS. For MEGATRON each path
  // names a pair PATH.bin, PATH.idx. Errors: InvalidArgument naming the file.
  static absl::StatusOr<std::unique_ptr<TokenStream>> Open(const std::vector<std::string>& paths,
                                                           proto::DataFormat format,
                                                           int64_t token_bytes,
                                                           const std::string& directory);

  int64_t tokens() const { return tokens_; }
  const std::vector<TokenFile>& files() const { return files_; }

  // Copies tokens [first, first + count) of the stream, which may cross files. A token that does
  // not fit in int32 becomes -1.
  // REQUIRES: 0 <= first, first + count <= tokens().
  void Read(int64_t first, int64_t count, int32_t* out) const;

  // Reads everything. Errors: InvalidArgument naming file, offset and value of the first token of
  // each file that is negative or not below `vocab`.
  absl::Status CheckVocabulary(int64_t vocab) const;

 private:
  std::vector<TokenFile> files_;
  int64_t tokens_ = 0;
};

}  // namespace planc

#endif  // PLANC_RUNTIME_DATA_TOKEN_STREAM_H_
