#include "runtime/tokenizer/added_tokens.h"

#include <unicode/uchar.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "runtime/tokenizer/utf8.h"

namespace planc {
namespace {

size_t CharacterBefore(const std::string& text, size_t at) {
  do {
    --at;
  } while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80);
  return at;
}

bool IsWhite(const std::string& text, size_t at) {
  return u_isUWhiteSpace(static_cast<UChar32>(CharacterAt(text, at))) != 0;
}

}  // namespace

AddedTokens::AddedTokens(std::vector<AddedToken> tokens) {
  for (AddedToken& token : tokens) {
    if (token.text.empty()) continue;
    by_byte_[static_cast<unsigned char>(token.text[0])].push_back(std::move(token));
  }
  for (std::vector<AddedToken>& list : by_byte_) {
    std::stable_sort(list.begin(), list.end(), [](const AddedToken& a, const AddedToken& b) {
      return a.text.size() > b.text.size();
    });
  }
}

std::vector<TextPart> AddedTokens::Split(const std::string& text, bool first) const {
  std::vector<TextPart> parts;
  size_t done = 0;
  for (size_t at = 0; at < text.size();) {
    const std::vector<AddedToken>& list = by_byte_[static_cast<unsigned char>(text[at])];
    const auto found = std::find_if(list.begin(), list.end(), [&](const AddedToken& token) {
      return text.compare(at, token.text.size(), token.text) == 0;
    });
    if (found == list.end()) {
      ++at;
      continue;
    }
    size_t begin = at;
    size_t end = at + found->text.size();
    while (found->left_strip && begin > done && IsWhite(text, CharacterBefore(text, begin))) {
      begin = CharacterBefore(text, begin);
    }
    while (found->right_strip && end < text.size() && IsWhite(text, end)) {
      end += CharacterBytes(text, end);
    }
    if (begin > done) parts.push_back({text.substr(done, begin - done), -1, first && done == 0});
    parts.push_back({found->text, found->token, first && begin == 0});
    done = at = end;
  }
  if (done < text.size()) parts.push_back({text.substr(done), -1, first && done == 0});
  return parts;
}

}  // namespace planc
