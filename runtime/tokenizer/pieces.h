#ifndef PLANC_RUNTIME_TOKENIZER_PIECES_H_
#define PLANC_RUNTIME_TOKENIZER_PIECES_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace planc {

// A piece of a text on its way to the words that become tokens.
struct Piece {
  std::string text;
  bool first = false;  // it begins where the whole text begins
};

// A step that cuts pieces, or changes them: one pre-tokenizer of a tokenizer.json.
class PieceSplitter {
 public:
  virtual ~PieceSplitter() = default;
  // Appends what becomes of `piece`, UTF-8. Errors: those of the regular expression library.
  virtual absl::Status Split(const Piece& piece, std::vector<Piece>* pieces) const = 0;
};

enum class SplitBehavior {
  kIsolated,  // matches and what lies between them are pieces
  kMatches,   // only matches are
  kGaps,      // only what lies between them is
};

// Cuts at the matches of a regular expression: PCRE2's, with \p{...}, \s and \w by Unicode 14.
// Errors: InvalidArgument with the place and reason of a pattern that cannot be compiled.
absl::StatusOr<std::unique_ptr<PieceSplitter>> MakeRegexSplitter(const std::string& pattern,
                                                                 SplitBehavior behavior);

// Writes each byte as one printable character, GPT-2's alphabet.
std::unique_ptr<PieceSplitter> MakeByteLevel();

// Puts a blank before a piece that does not begin with one. REQUIRES: pieces are not empty.
std::unique_ptr<PieceSplitter> MakeSpaceBefore();

// GPT-2's pattern, which the ByteLevel pre-tokenizer uses.
extern const char kGpt2Pattern[];

enum class PrependScheme { kAlways, kFirst, kNever };

// Replaces blanks by `replacement`, and puts it before pieces that do not begin with it; `split`
// cuts before each.
std::unique_ptr<PieceSplitter> MakeMetaspace(const std::string& replacement, PrependScheme scheme,
                                             bool split);

// The bytes that characters of GPT-2's alphabet stand for; text with any other character is
// returned as it is.
std::string BytesOfLevel(const std::string& text);

// All occurrences of `from`, left to right, replaced by `to`. REQUIRES: `from` is not empty.
std::string ReplaceAll(const std::string& text, const std::string& from, const std::string& to);

}  // namespace planc

#endif  // PLANC_RUNTIME_TOKENIZER_PIECES_H_
