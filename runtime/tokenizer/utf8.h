#ifndef PLANC_RUNTIME_TOKENIZER_UTF8_H_
#define PLANC_RUNTIME_TOKENIZER_UTF8_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace planc {

// Bytes of the character that begins at `at`, by its first byte. REQUIRES: `text` is UTF-8.
inline size_t CharacterBytes(std::string_view text, size_t at) {
  const unsigned char first = static_cast<unsigned char>(text[at]);
  if (first < 0x80) return 1;
  if (first < 0xe0) return 2;
  return first < 0xf0 ? 3 : 4;
}

// Appends a character.
inline void AppendCharacter(uint32_t code, std::string* text) {
  const auto add = [text](uint32_t byte) { text->push_back(static_cast<char>(byte)); };
  if (code < 0x80) {
    add(code);
  } else if (code < 0x800) {
    add(0xc0 | (code >> 6));
    add(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    add(0xe0 | (code >> 12));
    add(0x80 | ((code >> 6) & 0x3f));
    add(0x80 | (code & 0x3f));
  } else {
    add(0xf0 | (code >> 18));
    add(0x80 | ((code >> 12) & 0x3f));
    add(0x80 | ((code >> 6) & 0x3f));
    add(0x80 | (code & 0x3f));
  }
}

// The character that begins at `at`. REQUIRES: `text` is UTF-8.
uint32_t CharacterAt(std::string_view text, size_t at);

// Errors: InvalidArgument with the offset of the first byte that is not UTF-8 (RFC 3629).
absl::Status CheckUtf8(std::string_view text);

// Unicode normalization form C. REQUIRES: `text` is UTF-8. Errors: Internal with ICU's reason.
absl::StatusOr<std::string> ComposeUtf8(const std::string& text);

}  // namespace planc

#endif  // PLANC_RUNTIME_TOKENIZER_UTF8_H_
