#ifndef PLANC_COMPILER_DIAGNOSTICS_COLUMNS_H_
#define PLANC_COMPILER_DIAGNOSTICS_COLUMNS_H_

#include <cstddef>
#include <string>
#include <vector>

namespace planc {

// The bytes of one character of a line, and how much room it takes.
struct Character {
  size_t begin = 0;  // first byte
  size_t bytes = 1;  // of its UTF-8 form; a byte that is not UTF-8 is a character of its own
  int cells = 1;     // columns of a terminal: 0 for marks that combine, 2 for wide characters
  int utf16_units = 1;
};

// The characters (Unicode code points) of `text`, which is read as UTF-8.
std::vector<Character> CharactersOf(const std::string& text);

// How many characters `text` has.
int CharacterCount(const std::string& text);

// How many columns of a terminal `text` takes.
int CellCount(const std::string& text);

// The first byte of `text` that is not valid UTF-8; npos if all of it is.
size_t FindInvalidUtf8(const std::string& text);

}  // namespace planc

#endif  // PLANC_COMPILER_DIAGNOSTICS_COLUMNS_H_
