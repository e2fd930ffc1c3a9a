#ifndef PLANC_RUNTIME_DATA_MEGATRON_INDEX_H_
#define PLANC_RUNTIME_DATA_MEGATRON_INDEX_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/data/mapped_file.h"
#include "runtime/data/token_code.h"

namespace planc {

// What a Megatron .idx file says about its .bin file.
struct MegatronIndex {
  TokenCode code = TokenCode::kU16;
  int64_t tokens = 0;     // of all sequences, which lie one after the other
  int64_t sequences = 0;  // called documents where each document is one sequence
};

// Reads an index: "MMIDIDX" and two zero bytes, u64 version 1, u8 type code, u64 sequences,
// u64 document entries, i32 lengths, i64 byte offsets, i64 document boundaries; little endian.
// Errors: InvalidArgument naming `name` and what is wrong.
absl::StatusOr<MegatronIndex> ReadMegatronIndex(const MappedFile& file, const std::string& name);

}  // namespace planc

#endif  // PLANC_RUNTIME_DATA_MEGATRON_INDEX_H_
