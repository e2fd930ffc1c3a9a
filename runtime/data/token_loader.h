#ifndef PLANC_RUNTIME_DATA_TOKEN_LOADER_H_
#define PLANC_RUNTIME_DATA_TOKEN_LOADER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/data/data_position.h"
#include "runtime/data/inspect_tokens.h"
#include "runtime/data/token_source.h"
#include "runtime/data/token_stream.h"
#include "schemas/plan.h"

namespace planc {

// Which sequence of the step's global batch is sequence `i` of a microbatch. Over all microbatches,
// data-parallel ranks and i < micro, the indices are 0 .. global - 1, each once, so the sequences
// of a step do not depend on how the mesh splits them.
constexpr int64_t GlobalSequenceIndex(int64_t microbatch, int64_t dp_index, int64_t dp_size,
                                      int64_t micro, int64_t i) {
  return (microbatch * dp_size + dp_index) * micro + i;
}

// Windows of sequence + 1 tokens that begin every `sequence` tokens of a stream; each shares its
// last token with the next one's first. Up to sequence - 1 tokens at the end of the stream are in
// none.
constexpr int64_t WindowCount(int64_t tokens, int64_t sequence) { return (tokens - 1) / sequence; }

// Cuts a token stream into windows of sequence + 1 tokens, one every `sequence` tokens, and deals
// them out. Training shuffles them: the windows are used in an order that is a permutation of all
// of them in every epoch. Validation takes each once, in file order; sequences for which none is
// left have only targets that count in no loss (kIgnoredTarget).
class TokenLoader : public TokenSource {
 public:
  enum class Order { kShuffled, kSequential };
  static constexpr int64_t kNoWindow = -1;

  // `directory` is what relative paths in the job are relative to. Errors: InvalidArgument naming
  // the file that is missing, malformed or too short.
  static absl::StatusOr<std::unique_ptr<TokenLoader>> OpenTraining(const Plan& plan,
                                                                   const std::string& directory);
  // Null when the job names no validation files.
  static absl::StatusOr<std::unique_ptr<TokenLoader>> OpenValidation(const Plan& plan,
                                                                     const std::string& directory);

  // Errors, of both: as TokenStream::ReadChecked.
  absl::Status LoadTokens(const MicrobatchPosition& position, int32_t* tokens) override;
  absl::Status LoadTargets(const MicrobatchPosition& position, int32_t* targets) override;

  // Index of the window that sequence `index` of the global batch of `step` is; kNoWindow when
  // validation has used all of them.
  int64_t WindowOf(int64_t step, int64_t index) const;
  int64_t windows() const { return windows_; }
  // Leaves out what the last file has beyond that many tokens.
  void KeepFirst(int64_t tokens);
  // Training goes on from a position that was reached after `steps` steps.
  void GoOnFrom(DataPosition position, int64_t steps);
  const TokenStream& stream() const { return *stream_; }

 private:
  TokenLoader(const Plan& plan, std::unique_ptr<TokenStream> stream, Order order);
  // `none` takes the place of the tokens of no window.
  absl::Status Load(const MicrobatchPosition& position, int64_t shift, int32_t none,
                    int32_t* out) const;

  std::unique_ptr<TokenStream> stream_;
  Order order_;
  int64_t seed_;
  int64_t vocab_;
  int64_t sequence_;  // tokens
  int64_t global_;    // sequences
  int64_t dp_size_;
  int64_t windows_;
  DataPosition position_;  // of training, after `steps_` steps
  int64_t steps_ = 0;
};

// Reads all data of the job once, before anything starts, and says what is wrong with it: files
// that are missing, too short or something else, and what InspectTokens finds. `directory` as
// above.
DataFindings InspectData(const proto::Job& job, const std::string& directory);

}  // namespace planc

#endif  // PLANC_RUNTIME_DATA_TOKEN_LOADER_H_
