#include "runtime/tokenizer/utf8.h"

#include <unicode/unorm2.h>
#include <unicode/ustring.h>

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"

namespace planc {
namespace {

absl::Status IcuError(UErrorCode code) {
  return absl::InternalError(absl::StrCat("ICU: ", u_errorName(code)));
}

// Bytes of the well-formed character at `at`, or 0 (RFC 3629: no overlong forms, no surrogates).
size_t WellFormed(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) -> unsigned {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0;
  };
  const auto follows = [&](size_t i) { return (byte(i) & 0xc0) == 0x80; };
  const unsigned first = byte(at);
  const unsigned second = byte(at + 1);
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first < 0xe0) return follows(at + 1) ? 2 : 0;
  if (first >= 0xe0 && first < 0xf0) {
    const bool range = (first != 0xe0 || second >= 0xa0) && (first != 0xed || second < 0xa0);
    return range && follows(at + 1) && follows(at + 2) ? 3 : 0;
  }
  if (first >= 0xf0 && first < 0xf5) {
    const bool range = (first != 0xf0 || second >= 0x90) && (first != 0xf4 || second < 0x90);
    return range && follows(at + 1) && follows(at + 2) && follows(at + 3) ? 4 : 0;
  }
  return 0;
}

}  // namespace

uint32_t CharacterAt(std::string_view text, size_t at) {
  const size_t bytes = CharacterBytes(text, at);
  const uint32_t first = static_cast<unsigned char>(text[at]);
  if (bytes == 1) return first;
  uint32_t code = first & (0xffu >> (bytes + 1));
  for (size_t i = 1; i < bytes; ++i) {
    code = (code << 6) | (static_cast<unsigned char>(text[at + i]) & 0x3f);
  }
  return code;
}

absl::Status CheckUtf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const size_t bytes = WellFormed(text, at);
    if (bytes == 0) {
      return absl::InvalidArgumentError(absl::StrCat("byte ", at, " is not UTF-8"));
    }
    at += bytes;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ComposeUtf8(const std::string& text) {
  const bool ascii = std::all_of(text.begin(), text.end(),
                                 [](char c) { return static_cast<signed char>(c) >= 0; });
  if (ascii) return text;
  if (text.size() > INT32_MAX / 4) return absl::InternalError("text of more than 512 MiB");
  UErrorCode code = U_ZERO_ERROR;
  const UNormalizer2* const nfc = unorm2_getNFCInstance(&code);
  std::vector<UChar> wide(text.size() + 1);
  int32_t length = 0;
  u_strFromUTF8(wide.data(), static_cast<int32_t>(wide.size()), &length, text.data(),
                static_cast<int32_t>(text.size()), &code);
  if (U_FAILURE(code)) return IcuError(code);
  // A character composes to no more than three times as many units (Unicode annex 15).
  std::vector<UChar> composed(static_cast<size_t>(length) * 3 + 1);
  const int32_t units = unorm2_normalize(nfc, wide.data(), length, composed.data(),
                                         static_cast<int32_t>(composed.size()), &code);
  std::string result(static_cast<size_t>(units) * 3 + 1, '\0');
  int32_t bytes = 0;
  u_strToUTF8(result.data(), static_cast<int32_t>(result.size()), &bytes, composed.data(), units,
              &code);
  if (U_FAILURE(code)) return IcuError(code);
  result.resize(static_cast<size_t>(bytes));
  return result;
}

}  // namespace planc
