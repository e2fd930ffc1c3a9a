#ifndef PLANC_RUNTIME_DATA_TOKEN_HEADER_H_
#define PLANC_RUNTIME_DATA_TOKEN_HEADER_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/data/mapped_file.h"
#include "runtime/data/token_code.h"

namespace planc {

// What a token file says about itself.
struct TokenHeader {
  std::string name;  // "llm.c", "NumPy"
  std::string type;  // as the program that wrote it calls it: "uint16"
  TokenCode code = TokenCode::kU16;
  int64_t bytes = 0;  // of the header: where the first token stands
  int64_t tokens = 0;
};

// Reads the header of a token file, nothing when it has none:
//   llm.c and modded-nanogpt  256 int32: 20240520, version 1, tokens (uint16 follow), or 20240801,
//                             version 7, tokens (uint32 follow)
//   NumPy (.npy)              versions 1 to 3, one dimension, little-endian integers; an unsigned
//                             64-bit token from 2^63 counts as negative
// Errors: InvalidArgument naming `path` when there is a header that contradicts the file's size or
// describes something else than tokens.
absl::StatusOr<std::optional<TokenHeader>> ReadTokenHeader(const MappedFile& file,
                                                           const std::string& path);

}  // namespace planc

#endif  // PLANC_RUNTIME_DATA_TOKEN_HEADER_H_
