#ifndef PLANC_COMPILER_SPEC_YAML_LINES_H_
#define PLANC_COMPILER_SPEC_YAML_LINES_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace planc {

// A byte of a text, by line and byte of the line, both from 0.
struct TextPlace {
  int line = 0;
  int column = 0;
};

// One line of a YAML text, as far as brackets and quotes decide.
struct YamlLine {
  std::string text;      // without comment and trailing blanks
  int indent = 0;        // leading blanks and tabs
  int depth = 0;         // brackets that are open where it begins
  bool literal = false;  // part of a block text (| or >)
  int colons = 0;        // colons outside brackets and quotes that end a key
};

// An opening bracket.
struct YamlBracket {
  char character = '[';
  TextPlace place;
};

// What a scan of the text finds without understanding it.
struct YamlLines {
  std::vector<YamlLine> lines;
  std::optional<TextPlace> open_quote;      // a quote that does not end on its line; ends the scan
  std::optional<YamlBracket> open_bracket;  // the bracket that is never closed, or closed wrongly
  std::optional<TextPlace> stray_bracket;   // a closing bracket that nothing opened
};

YamlLines ScanYaml(const std::string& text);

}  // namespace planc

#endif  // PLANC_COMPILER_SPEC_YAML_LINES_H_
