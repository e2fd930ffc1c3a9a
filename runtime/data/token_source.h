#ifndef PLANC_RUNTIME_DATA_TOKEN_SOURCE_H_
#define PLANC_RUNTIME_DATA_TOKEN_SOURCE_H_

#include <cstdint>

#include "absl/status/status.h"

namespace planc {

// Which sequences one data-parallel rank computes with in one microbatch.
struct MicrobatchPosition {
  int64_t step = 0;        // optimizer step, or evaluation batch; counts from 0
  int64_t microbatch = 0;  // within the step, on each data-parallel rank
  int64_t dp_index = 0;    // dp_replicate coordinate * dp_shard + dp_shard coordinate
  int64_t rows = 0;        // tokens of the microbatch: sequences * tokens per sequence
};

// Where the programs of a plan read their tokens. Both functions are called by every pipeline stage
// and tensor-parallel rank on its own, must give the same values for the same position, and
// allocate nothing when they succeed.
class TokenSource {
 public:
  virtual ~TokenSource() = default;

  // Writes `position.rows` input tokens, sequence after sequence.
  virtual absl::Status LoadTokens(const MicrobatchPosition& position, int32_t* tokens) = 0;
  // Writes the token that follows each input token.
  virtual absl::Status LoadTargets(const MicrobatchPosition& position, int32_t* targets) = 0;
};

}  // namespace planc

#endif  // PLANC_RUNTIME_DATA_TOKEN_SOURCE_H_
