#include "compiler/spec/yaml_syntax.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "compiler/diagnostics/columns.h"
#include "compiler/spec/unexpanded.h"
#include "compiler/spec/yaml_lines.h"

namespace planc {
namespace {

bool IsNameCharacter(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '-';
}

// A name at the start of a line, and what follows it.
struct NamedLine {
  std::string name;
  int name_column = 0;  // bytes, from 0
  char next = 0;        // the first character after the name and its blanks; 0 at the end
  int next_column = 0;
  bool blanks = false;  // between name and next
  std::string rest;     // what comes after `next`, without blanks around
};

std::optional<NamedLine> ReadName(const YamlLine& line) {
  NamedLine named;
  size_t at = static_cast<size_t>(line.indent);
  if (absl::StartsWith(line.text.substr(std::min(at, line.text.size())), "- ")) at += 2;
  named.name_column = static_cast<int>(at);
  while (at < line.text.size() && IsNameCharacter(line.text[at])) named.name += line.text[at++];
  const bool word =
      !named.name.empty() && absl::ascii_isalpha(static_cast<unsigned char>(named.name[0]));
  if (!word || named.name == "---") return std::nullopt;
  while (at < line.text.size() && absl::ascii_isspace(static_cast<unsigned char>(line.text[at]))) {
    named.blanks = true;
    ++at;
  }
  named.next_column = static_cast<int>(at);
  if (at < line.text.size()) {
    named.next = line.text[at];
    named.rest = std::string(absl::StripAsciiWhitespace(line.text.substr(at + 1)));
  }
  return named;
}

class Reporter {
 public:
  Reporter(const std::string& file, const std::string& text, int line_offset,
           DiagnosticList& diagnostics)
      : file_(file),
        texts_(absl::StrSplit(text, '\n')),
        line_offset_(line_offset),
        diagnostics_(diagnostics) {}

  // A syntax error at `length` bytes.
  Diagnostic& Add(DiagnosticCode code, TextPlace place, int length, std::string message) {
    return diagnostics_.Add(code, SpanAt(place, length), std::move(message));
  }
  Diagnostic& Add(TextPlace place, int length, std::string message) {
    return Add(DiagnosticCode::kYamlSyntax, place, length, std::move(message));
  }

  Span SpanAt(TextPlace place, int length) const {
    const std::string line = place.line < static_cast<int>(texts_.size())
                                 ? texts_[static_cast<size_t>(place.line)]
                                 : std::string();
    const size_t begin = std::min(static_cast<size_t>(std::max(place.column, 0)), line.size());
    Span span{file_, place.line + 1 + line_offset_, 1, 1};
    span.column += CharacterCount(line.substr(0, begin));
    span.length = std::max(1, CharacterCount(line.substr(begin, static_cast<size_t>(length))));
    return span;
  }

 private:
  const std::string& file_;
  const std::vector<std::string> texts_;
  const int line_offset_;
  DiagnosticList& diagnostics_;
};

void ReportQuote(const TextPlace& quote, Reporter& report) {
  report.Add(quote, 1, "the quote that opens here does not end on its line").fix =
      "close it, or remove it: texts need no quotes unless they hold `: ` or ` #`";
}

void ReportBracket(const YamlBracket& bracket, Reporter& report) {
  const char closing = bracket.character == '[' ? ']' : '}';
  report
      .Add(bracket.place, 1,
           absl::StrCat("the `", std::string(1, bracket.character),
                        "` that opens here is never closed"))
      .fix = absl::StrCat("add the `", std::string(1, closing), "`");
}

// What is wrong with the line `at` alone, where the reader stopped at it or right after it.
bool ReportLine(const YamlLines& scan, int at, Reporter& report) {
  const YamlLine& line = scan.lines[static_cast<size_t>(at)];
  if (line.depth > 0 || line.literal || line.text.empty()) return false;
  const std::optional<NamedLine> named = ReadName(line);
  if (!named.has_value()) return false;
  const TextPlace name{at, named->name_column};
  const int length = static_cast<int>(named->name.size());
  if (line.colons > 1) {
    const size_t second = line.text.find(": ", static_cast<size_t>(named->next_column) + 1);
    report
        .Add({at, static_cast<int>(second == std::string::npos ? line.text.size() - 1 : second)}, 1,
             "a second colon on the line")
        .fix = "put the value in quotes, or the second key on a line of its own";
    return true;
  }
  if (line.colons == 1) return false;
  if (named->next == ':') {
    report.Add({at, named->next_column}, 1, "a blank is missing after the colon").fix =
        absl::StrCat("write `", named->name, ": ", named->rest, "`");
    return true;
  }
  const std::string value =
      named->next == 0 ? "" : absl::StrCat(std::string(1, named->next), named->rest);
  report.Add(name, length, absl::StrCat("a colon is missing after ", named->name)).fix =
      absl::StrCat("write `", named->name, ":", value.empty() ? "" : " ", value, "`");
  return true;
}

// Whether the indentation of line `at` fits the lines above it.
bool ReportIndentation(const YamlLines& scan, int at, Reporter& report) {
  const YamlLine& line = scan.lines[static_cast<size_t>(at)];
  if (line.depth > 0 || line.text.empty()) return false;
  int above = at - 1;
  while (above >= 0 && scan.lines[static_cast<size_t>(above)].text.empty()) --above;
  if (above < 0) return false;
  const YamlLine& previous = scan.lines[static_cast<size_t>(above)];
  const bool has_value = !absl::EndsWith(previous.text, ":");
  if (line.indent > previous.indent && has_value) {
    report
        .Add({at, 0}, line.indent,
             "the line is indented deeper than the one above it, which already has a value")
        .fix = absl::StrCat("indent it by ", previous.indent, " blanks, as line ", above + 1);
    return true;
  }
  int nearest = -1;
  for (int i = above; i >= 0; --i) {
    const YamlLine& other = scan.lines[static_cast<size_t>(i)];
    if (other.text.empty() || other.literal || other.depth > 0) continue;
    if (other.indent == line.indent) return false;
    if (nearest < 0 ||
        std::abs(other.indent - line.indent) <
            std::abs(scan.lines[static_cast<size_t>(nearest)].indent - line.indent)) {
      nearest = i;
    }
    if (other.indent == 0) break;
  }
  if (nearest < 0) return false;
  report.Add({at, 0}, line.indent, "the indentation matches no line above it").fix =
      absl::StrCat("indent it by ", scan.lines[static_cast<size_t>(nearest)].indent,
                   " blanks, as line ", nearest + 1);
  return true;
}

// Whether brackets are open at byte `column` of the line.
bool IsInsideBrackets(const YamlLine& line, int column) {
  int depth = line.depth;
  for (int i = 0; i < std::min(column, static_cast<int>(line.text.size())); ++i) {
    const char c = line.text[static_cast<size_t>(i)];
    if (c == '[' || c == '{') ++depth;
    if (c == ']' || c == '}') --depth;
  }
  return depth > 0;
}

void ReportComma(const YamlLines& scan, TextPlace place, Reporter& report) {
  // The reader stops behind the name that should have come after a comma.
  const auto line = std::min(static_cast<size_t>(place.line), scan.lines.size() - 1);
  const std::string& text = scan.lines[line].text;
  int begin = std::min(place.column, static_cast<int>(text.size()));
  while (begin > 0 && IsNameCharacter(text[static_cast<size_t>(begin - 1)])) --begin;
  const int length = std::max(1, place.column - begin);
  report.Add({place.line, begin}, length, "a comma or a closing bracket is missing before this")
      .fix = "separate the entries between brackets by commas";
}

// A character with which no plain text begins.
bool ReportCharacter(const std::string& text, TextPlace place, Reporter& report) {
  const std::vector<std::string> lines = absl::StrSplit(text, '\n');
  if (place.line >= static_cast<int>(lines.size())) return false;
  const std::string& line = lines[static_cast<size_t>(place.line)];
  if (place.column < 0 || place.column >= static_cast<int>(line.size())) return false;
  const std::string from_here = line.substr(static_cast<size_t>(place.column));
  const std::string word = from_here.substr(0, from_here.find_first_of(" \t\r,]}"));
  const int length = static_cast<int>(word.size());
  if (line[static_cast<size_t>(place.column)] == '*') {
    const std::optional<Unexpanded> pattern = FindUnexpanded(word);
    if (word.find_first_of("./", 1) == std::string::npos || !pattern.has_value()) {
      report
          .Add(DiagnosticCode::kAnchorOrAlias, place, length,
               "YAML aliases are not used in job files")
          .fix = "write the value out";
      return true;
    }
    report
        .Add(DiagnosticCode::kNotExpanded, place, length,
             absl::StrCat("\"", word, "\": ", pattern->what))
        .fix = pattern->fix;
    return true;
  }
  if (from_here.find_first_of("@`%") != 0) return false;
  report.Add(place, length, absl::StrCat("a text cannot begin with `", from_here.substr(0, 1), "`"))
      .fix = absl::StrCat("put it in quotes: '", word, "'");
  return true;
}

}  // namespace

void CheckIsText(const std::string& file, const std::string& text, DiagnosticList& diagnostics) {
  const auto refuse = [&](const std::string& what, const std::string& fix) {
    diagnostics.Add(DiagnosticCode::kNotAJob, Span{file, 0, 0, 0}, what).fix = fix;
  };
  // As schemas/plan_io writes it.
  if (absl::StartsWith(text, "planc-plan ")) {
    return refuse("the file is a plan, not a job",
                  absl::StrCat("`planc plan ", file, "` shows it, `planc run ", file,
                               "` runs it; check takes the job it was made from"));
  }
  if (absl::StartsWith(text, "\xff\xfe") || absl::StartsWith(text, "\xfe\xff")) {
    return refuse("the file is UTF-16 text", "save it as UTF-8");
  }
  if (absl::StrContains(text, '\0')) {
    return refuse("the file is binary data, not text", "name the job file");
  }
  const size_t invalid = FindInvalidUtf8(text);
  if (invalid == std::string::npos) return;
  const std::string before = text.substr(0, invalid);
  const size_t start = before.rfind('\n') == std::string::npos ? 0 : before.rfind('\n') + 1;
  const auto line = static_cast<int>(std::count(before.begin(), before.end(), '\n')) + 1;
  diagnostics
      .Add(DiagnosticCode::kNotAJob, Span{file, line, CharacterCount(before.substr(start)) + 1, 1},
           absl::StrCat("the file is not UTF-8: byte 0x",
                        absl::Hex(static_cast<unsigned char>(text[invalid]))))
      .fix = "save it as UTF-8";
}

void CheckYamlText(const std::string& file, const std::string& text, int line_offset,
                   DiagnosticList& diagnostics) {
  const YamlLines scan = ScanYaml(text);
  Reporter report(file, text, line_offset, diagnostics);
  bool tab = false;
  bool equals = false;
  bool table = false;
  for (size_t i = 0; i < scan.lines.size(); ++i) {
    const YamlLine& line = scan.lines[i];
    if (line.literal || line.depth > 0 || line.text.empty()) continue;
    const int at = static_cast<int>(i);
    const size_t first_tab = line.text.find('\t');
    if (!tab && first_tab < static_cast<size_t>(line.indent)) {
      report.Add({at, static_cast<int>(first_tab)}, 1, "a tab cannot indent").fix =
          "indent with blanks, two for each level";
      tab = true;
    }
    const std::optional<NamedLine> named = ReadName(line);
    // The value of --set, and an entry of a list, may be a text with an equals sign.
    const bool may_be_text = file == kSetFile || line.text[static_cast<size_t>(line.indent)] == '-';
    if (!equals && !may_be_text && named.has_value() && named->next == '=' && line.colons == 0) {
      report.Add({at, named->next_column}, 1, "`=` does not give a value").fix =
          absl::StrCat("write `", named->name, ": ", named->rest, "`");
      equals = true;
    }
    const bool is_table = line.indent == 0 && line.text.size() > 2 && line.text[0] == '[' &&
                          line.text.back() == ']' &&
                          std::all_of(line.text.begin() + 1, line.text.end() - 1, IsNameCharacter);
    if (!table && is_table && scan.lines.size() > 1) {
      const std::string name = line.text.substr(1, line.text.size() - 2);
      report.Add({at, 0}, static_cast<int>(line.text.size()), "this is a section of a TOML file")
          .fix = absl::StrCat("write `", name, ":` and indent its keys below it");
      table = true;
    }
  }
  if (scan.open_quote.has_value()) ReportQuote(*scan.open_quote, report);
}

void ReportSyntaxError(const std::string& file, const std::string& text, int line_offset, int line,
                       int column, const std::string& reason, DiagnosticList& diagnostics) {
  const YamlLines scan = ScanYaml(text);
  Reporter report(file, text, line_offset, diagnostics);
  if (ReportCharacter(text, {line, column}, report)) return;
  if (scan.open_bracket.has_value() && scan.open_bracket->place.line <= line) {
    return ReportBracket(*scan.open_bracket, report);
  }
  if (scan.stray_bracket.has_value()) {
    report.Add(*scan.stray_bracket, 1, "nothing is open that this bracket could close").fix =
        "remove it, or open it before";
    return;
  }
  const int last = std::min(line, static_cast<int>(scan.lines.size()) - 1);
  if (last >= 0 && IsInsideBrackets(scan.lines[static_cast<size_t>(last)], column)) {
    return ReportComma(scan, {line, column}, report);
  }
  // The reader often stops at the line after the mistake.
  int looked_at = 0;
  for (int at = last; at >= 0 && looked_at < 2; --at) {
    if (scan.lines[static_cast<size_t>(at)].text.empty()) continue;
    if (ReportLine(scan, at, report)) return;
    ++looked_at;
  }
  looked_at = 0;
  for (int at = last; at >= 0 && looked_at < 2; --at) {
    if (scan.lines[static_cast<size_t>(at)].text.empty()) continue;
    if (ReportIndentation(scan, at, report)) return;
    ++looked_at;
  }
  report.Add({line, column}, 1, absl::StrCat("not valid YAML: ", reason));
}

}  // namespace planc
