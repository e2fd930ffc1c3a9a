#ifndef PLANC_RUNTIME_TOKENIZER_ADDED_TOKENS_H_
#define PLANC_RUNTIME_TOKENIZER_ADDED_TOKENS_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace planc {

// A token that is looked for in the text before anything else: <|endoftext|>.
struct AddedToken {
  std::string text;
  int32_t token = 0;
  bool left_strip = false;   // takes the white space before it
  bool right_strip = false;  // and after it
};

// A part of a text: a token that was found, or text without one.
struct TextPart {
  std::string text;
  int32_t token = -1;  // -1: text
  bool first = false;  // it begins where the whole text begins
};

// Finds added tokens: the leftmost first, of those that begin at the same place the longest.
class AddedTokens {
 public:
  explicit AddedTokens(std::vector<AddedToken> tokens);
  // Cuts `text`; parts are not empty. `first`: `text` begins where the whole text begins.
  std::vector<TextPart> Split(const std::string& text, bool first) const;

 private:
  std::array<std::vector<AddedToken>, 256> by_byte_;  // by first byte, longest first
};

}  // namespace planc

#endif  // PLANC_RUNTIME_TOKENIZER_ADDED_TOKENS_H_
