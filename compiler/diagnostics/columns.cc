#include "compiler/diagnostics/columns.h"

#include <cstdint>

namespace planc {
namespace {

struct Range {
  uint32_t first;
  uint32_t last;
};

// Marks that are drawn over the character before them, and characters without width.
constexpr Range kCombining[] = {
    {0x0300, 0x036f}, {0x0483, 0x0489},  {0x0591, 0x05bd}, {0x0610, 0x061a}, {0x064b, 0x065f},
    {0x0900, 0x0902}, {0x0e34, 0x0e3a},  {0x0e47, 0x0e4e}, {0x1ab0, 0x1aff}, {0x1dc0, 0x1dff},
    {0x200b, 0x200f}, {0x2060, 0x2064},  {0x20d0, 0x20ff}, {0xfe00, 0xfe0f}, {0xfe20, 0xfe2f},
    {0xfeff, 0xfeff}, {0xe0100, 0xe01ef}};

// East Asian wide and full-width characters and emoji (Unicode Standard Annex 11).
constexpr Range kWide[] = {{0x1100, 0x115f},   {0x2e80, 0x303e},   {0x3041, 0x33ff},
                           {0x3400, 0x4dbf},   {0x4e00, 0x9fff},   {0xa000, 0xa4cf},
                           {0xac00, 0xd7a3},   {0xf900, 0xfaff},   {0xfe30, 0xfe4f},
                           {0xff00, 0xff60},   {0xffe0, 0xffe6},   {0x1f300, 0x1f64f},
                           {0x1f680, 0x1f6ff}, {0x1f900, 0x1f9ff}, {0x20000, 0x3fffd}};

template <size_t kSize>
bool IsIn(const Range (&ranges)[kSize], uint32_t code) {
  for (const Range& range : ranges) {
    if (code >= range.first && code <= range.last) return true;
  }
  return false;
}

// Reads the code point at `at`; returns its bytes, or 0 if it is not valid UTF-8.
size_t Decode(const std::string& text, size_t at, uint32_t* code) {
  const auto byte = [&text](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(at);
  size_t bytes = 0;
  if (lead < 0x80) {
    bytes = 1;
    *code = lead;
  } else if (lead >= 0xc2 && lead < 0xe0) {
    bytes = 2;
    *code = lead & 0x1fU;
  } else if (lead >= 0xe0 && lead < 0xf0) {
    bytes = 3;
    *code = lead & 0x0fU;
  } else if (lead >= 0xf0 && lead < 0xf5) {
    bytes = 4;
    *code = lead & 0x07U;
  }
  if (bytes == 0 || at + bytes > text.size()) return 0;
  for (size_t i = 1; i < bytes; ++i) {
    if ((byte(at + i) & 0xc0U) != 0x80) return 0;
    *code = *code << 6 | (byte(at + i) & 0x3fU);
  }
  const bool too_long = (bytes == 3 && *code < 0x800) || (bytes == 4 && *code < 0x10000);
  const bool no_character = (*code >= 0xd800 && *code < 0xe000) || *code > 0x10ffff;
  return too_long || no_character ? 0 : bytes;
}

}  // namespace

std::vector<Character> CharactersOf(const std::string& text) {
  std::vector<Character> characters;
  for (size_t at = 0; at < text.size();) {
    uint32_t code = 0;
    const size_t bytes = Decode(text, at, &code);
    Character character{at, bytes == 0 ? 1 : bytes, 1, 1};
    if (bytes > 0) {
      character.cells = IsIn(kCombining, code) ? 0 : IsIn(kWide, code) ? 2 : 1;
      character.utf16_units = code >= 0x10000 ? 2 : 1;
    }
    characters.push_back(character);
    at += character.bytes;
  }
  return characters;
}

int CharacterCount(const std::string& text) { return static_cast<int>(CharactersOf(text).size()); }

int CellCount(const std::string& text) {
  int cells = 0;
  for (const Character& character : CharactersOf(text)) cells += character.cells;
  return cells;
}

size_t FindInvalidUtf8(const std::string& text) {
  for (size_t at = 0; at < text.size();) {
    uint32_t code = 0;
    const size_t bytes = Decode(text, at, &code);
    if (bytes == 0) return at;
    at += bytes;
  }
  return std::string::npos;
}

}  // namespace planc
