#ifndef PLANC_PLANC_SAMPLING_NEXT_TOKEN_H_
#define PLANC_PLANC_SAMPLING_NEXT_TOKEN_H_

#include <cstdint>

namespace planc {

// How the next token is chosen from the model's distribution.
struct SamplingOptions {
  double temperature = 0.8;  // divides the logits; 0 takes the most likely token
  int64_t top_k = 40;        // only so many most likely tokens; 0: all
  uint64_t seed = 1234;      // with the token's position, names the random number
};

// A number in [0, 1) with 53 random bits that depends on (seed, position) only.
double UniformAt(uint64_t seed, int64_t position);

// The token chosen from `vocab` logits, for the token at `position` of the text. Ties go to the
// lower token.
int32_t NextToken(const float* logits, int64_t vocab, const SamplingOptions& options,
                  int64_t position);

}  // namespace planc

#endif  // PLANC_PLANC_SAMPLING_NEXT_TOKEN_H_
