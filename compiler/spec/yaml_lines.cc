#include "compiler/spec/yaml_lines.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"

namespace planc {
namespace {

bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

class Scanner {
 public:
  YamlLines Run(const std::string& text) {
    for (const absl::string_view line : absl::StrSplit(text, '\n')) {
      Line(std::string(line));
      ++line_;
      if (found_.open_quote.has_value()) return found_;
    }
    if (!brackets_.empty() && !found_.open_bracket.has_value()) {
      found_.open_bracket = brackets_.front();
    }
    return found_;
  }

 private:
  void Line(const std::string& text) {
    YamlLine line;
    line.depth = static_cast<int>(brackets_.size());
    const size_t begin = text.find_first_not_of(" \t\r");
    line.indent = static_cast<int>(begin == std::string::npos ? text.size() : begin);
    if (literal_) {
      const bool inside = begin == std::string::npos || line.indent > literal_indent_;
      line.literal = inside;
      literal_ = inside;
    }
    if (line.literal || begin == std::string::npos) {
      found_.lines.push_back(line);
      return;
    }
    // A key at the left margin cannot stand inside brackets: the outermost one was left open.
    if (!brackets_.empty() && line.indent == 0 && StartsWithKey(text) &&
        !found_.open_bracket.has_value()) {
      found_.open_bracket = brackets_.front();
    }
    const size_t end = Tokens(text, begin, &line);
    line.text = std::string(absl::StripTrailingAsciiWhitespace(text.substr(0, end)));
    found_.lines.push_back(line);
  }

  static bool StartsWithKey(const std::string& text) {
    size_t at = 0;
    while (at < text.size() &&
           (absl::ascii_isalnum(static_cast<unsigned char>(text[at])) || text[at] == '_')) {
      ++at;
    }
    return at > 0 && at < text.size() && text[at] == ':' &&
           (at + 1 == text.size() || IsBlank(text[at + 1]));
  }

  // Walks over one line from `at`; returns where its comment begins, or its end.
  size_t Tokens(const std::string& text, size_t at, YamlLine* line) {
    bool closed = false;          // a bracket was closed on the line, and none is open
    bool value_may_start = true;  // otherwise quotes and brackets are part of a plain text
    for (; at < text.size(); ++at) {
      const char c = text[at];
      const bool last = at + 1 == text.size();
      if (IsBlank(c)) continue;
      if (c == '#' && (at == 0 || IsBlank(text[at - 1]))) return at;
      if ((c == '"' || c == '\'') && value_may_start) {
        const size_t close = CloseQuote(text, at);
        if (close == std::string::npos) {
          found_.open_quote = Place(at);
          return text.size();
        }
        at = close;
        value_may_start = false;
      } else if ((c == '[' || c == '{') && (value_may_start || !brackets_.empty())) {
        brackets_.push_back({c, Place(at)});
        value_may_start = true;
      } else if ((c == ']' || c == '}') && (value_may_start || closed || !brackets_.empty())) {
        Close(c, at);
        closed = brackets_.empty();
        value_may_start = false;
      } else if (c == ',' && !brackets_.empty()) {
        value_may_start = true;
      } else if (c == ':' && (last || IsBlank(text[at + 1]) || !brackets_.empty())) {
        if (brackets_.empty()) ++line->colons;
        value_may_start = true;
      } else if (c == '-' && value_may_start && (last || IsBlank(text[at + 1]))) {
        // An entry of a list.
      } else if ((c == '|' || c == '>') && value_may_start && brackets_.empty()) {
        literal_ = true;
        literal_indent_ = line->indent;
        value_may_start = false;
      } else {
        value_may_start = false;
      }
    }
    return text.size();
  }

  // The end of the quoted text that starts at `at`, or npos.
  static size_t CloseQuote(const std::string& text, size_t at) {
    const char quote = text[at];
    for (size_t i = at + 1; i < text.size(); ++i) {
      if (quote == '"' && text[i] == '\\') {
        ++i;
      } else if (text[i] == quote) {
        // In single quotes two of them stand for one.
        if (quote == '"' || i + 1 == text.size() || text[i + 1] != '\'') return i;
        ++i;
      }
    }
    return std::string::npos;
  }

  void Close(char c, size_t at) {
    if (brackets_.empty()) {
      if (!found_.stray_bracket.has_value()) found_.stray_bracket = Place(at);
      return;
    }
    const bool matches = (brackets_.back().character == '[') == (c == ']');
    if (!matches && !found_.open_bracket.has_value()) found_.open_bracket = brackets_.back();
    brackets_.pop_back();
  }

  TextPlace Place(size_t column) const { return {line_, static_cast<int>(column)}; }

  YamlLines found_;
  std::vector<YamlBracket> brackets_;
  int line_ = 0;
  bool literal_ = false;
  int literal_indent_ = 0;
};

}  // namespace

YamlLines ScanYaml(const std::string& text) { return Scanner().Run(text); }

}  // namespace planc
