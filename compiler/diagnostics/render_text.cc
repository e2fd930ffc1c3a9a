#include "compiler/diagnostics/render_text.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "compiler/diagnostics/columns.h"
#include "schemas/counted.h"

namespace planc {
namespace {

constexpr int kColumns = 100;
constexpr char kRed[] = "\x1b[1;31m";
constexpr char kYellow[] = "\x1b[1;33m";
constexpr char kBlue[] = "\x1b[1;34m";
constexpr char kPlain[] = "\x1b[0m";

// Marks of one file, by line.
struct FileMarks {
  std::string file;
  std::map<int, std::vector<const LabeledSpan*>> lines;
};

class TextRenderer {
 public:
  TextRenderer(const SourceTexts& sources, bool colour) : sources_(sources), colour_(colour) {}

  std::string Render(const Diagnostic& diagnostic) {
    out_.clear();
    const std::string level =
        absl::StrCat(SeverityText(diagnostic.severity), "[", InfoOf(diagnostic.code).id, "]");
    absl::StrAppend(&out_, Paint(level, diagnostic.severity == Severity::kError ? kRed : kYellow),
                    ": ", WrapText(diagnostic.message, static_cast<int>(level.size()) + 2, 4),
                    "\n");
    Places(diagnostic);
    for (const std::string& note : diagnostic.notes) Remark("note", note);
    if (!diagnostic.fix.empty()) Remark("help", diagnostic.fix);
    return out_;
  }

 private:
  std::string Paint(const std::string& text, const char* colour) const {
    return colour_ ? absl::StrCat(colour, text, kPlain) : text;
  }

  std::string Gutter(const std::string& text) const {
    const auto width = static_cast<size_t>(gutter_);
    const std::string padding(width > text.size() ? width - text.size() : 0, ' ');
    return Paint(absl::StrCat(padding, text, " |"), kBlue);
  }

  void Remark(const std::string& kind, const std::string& text) {
    absl::StrAppend(&out_, std::string(static_cast<size_t>(gutter_), ' '), " ", Paint("=", kBlue),
                    " ", kind, ": ",
                    WrapText(text, gutter_ + 5 + static_cast<int>(kind.size()), gutter_ + 5), "\n");
  }

  // The source lines of all places, the file of the primary one first.
  void Places(const Diagnostic& diagnostic) {
    std::vector<LabeledSpan> all = {{diagnostic.span, diagnostic.label}};
    all.insert(all.end(), diagnostic.secondary.begin(), diagnostic.secondary.end());
    std::vector<FileMarks> files;
    int last_line = 0;
    for (const LabeledSpan& mark : all) {
      if (mark.span.file.empty()) continue;
      auto file = std::find_if(files.begin(), files.end(), [&mark](const FileMarks& marks) {
        return marks.file == mark.span.file;
      });
      if (file == files.end()) file = files.insert(files.end(), {mark.span.file, {}});
      if (mark.span.line > 0) file->lines[mark.span.line].push_back(&mark);
      last_line = std::max(last_line, mark.span.line);
    }
    gutter_ = static_cast<int>(absl::StrCat(last_line).size());
    for (const FileMarks& file : files) {
      const bool is_first = &file == &files.front();
      const std::string place =
          is_first ? PlaceOf(diagnostic.span) : PlaceOf(file.lines.begin()->second.front()->span);
      absl::StrAppend(&out_, std::string(static_cast<size_t>(gutter_), ' '),
                      Paint(is_first ? "-->" : ":::", kBlue), " ", place, "\n");
      Lines(file, &all.front());
    }
  }

  void Lines(const FileMarks& file, const LabeledSpan* primary) {
    int previous = 0;
    for (const auto& [line, marks] : file.lines) {
      const std::optional<std::string> source = SourceLine(sources_, file.file, line);
      if (!source.has_value()) continue;
      if (previous == 0) {
        absl::StrAppend(&out_, Gutter(""), "\n");
      } else if (line > previous + 1) {
        absl::StrAppend(&out_, Paint("...", kBlue), "\n");
      }
      previous = line;
      Line(line, *source, marks, primary);
    }
  }

  // One source line and below it one caret line for each mark, from right to left.
  void Line(int line, const std::string& source, std::vector<const LabeledSpan*> marks,
            const LabeledSpan* primary) {
    std::sort(marks.begin(), marks.end(), [](const LabeledSpan* a, const LabeledSpan* b) {
      return a->span.column > b->span.column;
    });
    // A long line is shown from a little before its leftmost mark.
    const int room = kColumns - gutter_ - 3;
    const std::vector<Character> characters = CharactersOf(source);
    const auto count = static_cast<int>(characters.size());
    const int leftmost = marks.back()->span.column - 1;
    const bool fits = CellCount(source) <= room;
    const int start = fits ? 0 : std::max(0, std::min(leftmost - 10, count));
    absl::StrAppend(&out_, Gutter(absl::StrCat(line)), " ", Shown(source, characters, start, room),
                    "\n");
    // Cells from character `from` to `to`; beyond the end of the line each is one.
    const auto cells = [&characters, count](int from, int to) {
      int sum = std::max(0, to - std::max(from, count));
      for (int i = from; i < std::min(to, count); ++i) {
        sum += characters[static_cast<size_t>(i)].cells;
      }
      return sum;
    };
    for (const LabeledSpan* mark : marks) {
      const int first = mark->span.column - 1;
      if (first < start) continue;
      const int column = cells(start, first);
      if (column >= room) continue;
      const int length =
          std::clamp(cells(first, first + std::max(mark->span.length, 1)), 1, room - column);
      std::string carets(static_cast<size_t>(length), mark == primary ? '^' : '-');
      std::string label;
      // A label that does not fit is left out: the message has all names and values.
      if (column + length + 1 + static_cast<int>(mark->label.size()) <= room) {
        label = mark->label.empty() ? "" : absl::StrCat(" ", mark->label);
      }
      const char* colour = mark == primary ? kRed : kBlue;
      absl::StrAppend(&out_, Gutter(""), " ", std::string(static_cast<size_t>(column), ' '),
                      Paint(absl::StrCat(carets, label), colour), "\n");
    }
  }

  // The part of a source line that fits; what no terminal should see is replaced.
  static std::string Shown(const std::string& source, const std::vector<Character>& characters,
                           int start, int room) {
    std::string shown;
    int used = 0;
    for (size_t i = static_cast<size_t>(start); i < characters.size(); ++i) {
      const Character& character = characters[i];
      const auto byte = static_cast<unsigned char>(source[character.begin]);
      used += character.cells;
      if (used > room) break;
      if (byte < 0x20 || byte == 0x7f) {
        shown += ' ';
      } else if (character.bytes == 1 && byte >= 0x80) {
        shown += '?';
      } else {
        shown.append(source, character.begin, character.bytes);
      }
    }
    return shown;
  }

  const SourceTexts& sources_;
  const bool colour_;
  int gutter_ = 1;
  std::string out_;
};

}  // namespace

std::string RenderText(const DiagnosticList& list, const SourceTexts& sources, bool colour) {
  std::string text;
  TextRenderer renderer(sources, colour);
  for (const Diagnostic& diagnostic : list.entries()) {
    absl::StrAppend(&text, renderer.Render(diagnostic), "\n");
  }
  if (!list.entries().empty()) {
    absl::StrAppend(&text, Counted(list.ErrorCount(), "error"), ", ",
                    Counted(list.WarningCount(), "warning"), "; `planc explain ",
                    InfoOf(list.entries().front().code).id, "` says more\n");
  }
  return text;
}

std::string SeverityText(Severity severity) {
  return severity == Severity::kError ? "error" : "warning";
}

std::string WrapText(const std::string& text, int used, int indent) {
  std::string result;
  int column = used;
  for (const std::string& word : std::vector<std::string>(absl::StrSplit(text, ' '))) {
    const int width = CellCount(word);
    if (!result.empty() && column + 1 + width > kColumns) {
      absl::StrAppend(&result, "\n", std::string(static_cast<size_t>(indent), ' '), word);
      column = indent + width;
    } else {
      const bool first = result.empty();
      absl::StrAppend(&result, first ? "" : " ", word);
      column += width + (first ? 0 : 1);
    }
  }
  return result;
}

}  // namespace planc
