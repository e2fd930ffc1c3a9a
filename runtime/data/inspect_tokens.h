#ifndef PLANC_RUNTIME_DATA_INSPECT_TOKENS_H_
#define PLANC_RUNTIME_DATA_INSPECT_TOKENS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "runtime/data/token_stream.h"
#include "schemas/fault.h"
#include "schemas/job.pb.h"

namespace planc {

// How much data there is.
struct DataAmount {
  int64_t files = 0;
  int64_t tokens = 0;
  int64_t windows = 0;  // of batch.sequence tokens and the one that follows
};

// What was found in the data of a job. Every entry names key, file and what to write instead.
struct DataFindings {
  DataAmount train;
  DataAmount validation;
  std::vector<std::string> errors;    // the data is not what the job says: nothing may train on it
  std::vector<std::string> warnings;  // it may be meant so

  std::optional<Fault> fault;  // of all errors, where it is not the data's

  // OK without errors, else InvalidArgument with all of them, one a line, and the fault.
  absl::Status ToStatus() const;
};

// Reads all of `stream`, whose files are of `format`, and adds what is wrong with it to `findings`,
// each entry beginning with `key`:
//   a token that is not below `vocab`;
//   integers of another width or byte order than they are read with: by which of eight successive
//   bytes are zero, and by the entropies of the two bytes of 16-bit tokens (files without a
//   header); text read as token numbers; tokens or other binary data read as bytes; nothing but
//   zeros; hardly anything but one token; a tail of one token, as a file has that was not written
//   to its end.
// All but the first look at 128 MiB of each file, spread over it.
void InspectTokens(const TokenStream& stream, proto::DataFormat format, int64_t vocab,
                   const std::string& key, DataFindings* findings);

}  // namespace planc

#endif  // PLANC_RUNTIME_DATA_INSPECT_TOKENS_H_
