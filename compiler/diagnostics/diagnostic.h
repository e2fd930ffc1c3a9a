#ifndef PLANC_COMPILER_DIAGNOSTICS_DIAGNOSTIC_H_
#define PLANC_COMPILER_DIAGNOSTICS_DIAGNOSTIC_H_

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace planc {

enum class Severity { kError, kWarning };

// The rows of diagnostics.def.
enum class DiagnosticCode : int {
#define PLANC_DIAGNOSTIC(number, name, severity, title, rule, why, fix) name = number,
#include "compiler/diagnostics/diagnostics.def"
#undef PLANC_DIAGNOSTIC
};

// What is known about a code before it occurs; `planc explain` prints it.
struct DiagnosticInfo {
  DiagnosticCode code;
  std::string id;    // "PL0123"
  std::string name;  // "kUnknownKey"
  Severity severity;
  std::string title;  // a headline without values
  std::string rule;   // what must hold
  std::string why;    // why it must hold
  std::string fix;    // what to do
};

// All rows of diagnostics.def, in its order.
const std::vector<DiagnosticInfo>& AllDiagnostics();

// The row of a code.
const DiagnosticInfo& InfoOf(DiagnosticCode code);

// The row whose id is `id` ("PL0123", case-insensitive), or nullptr.
const DiagnosticInfo* FindDiagnostic(const std::string& id);

// The file name of spans that point into a --set argument; the line is the argument's number.
inline constexpr char kSetFile[] = "--set";

// A place in a file. Lines and columns start at 1; line 0 means the file as a whole, an empty file
// name means no place at all. Columns and lengths count characters (Unicode code points).
struct Span {
  std::string file;
  int line = 0;
  int column = 0;
  int length = 0;  // characters to underline; at least one is drawn
};

struct LabeledSpan {
  Span span;
  std::string label;
};

// A new value of one key, as it is written in a job file.
struct Change {
  std::string key;    // path, such as mesh.tp
  std::string value;  // YAML text
};

// Changes that belong together.
using Proposal = std::vector<Change>;

struct Diagnostic {
  DiagnosticCode code;
  Severity severity;
  Span span;                           // primary place
  std::string label;                   // written beside the caret; may be empty
  std::string message;                 // stands alone: names and values, one sentence
  std::vector<LabeledSpan> secondary;  // other places that matter
  std::vector<std::string> notes;
  std::string fix;  // what to write instead; may be empty
  // Changes that may cure it, the most sensible first. Those that pass all rules become the fix.
  std::vector<Proposal> proposals;
};

// The diagnostics of one phase or one command.
class DiagnosticList {
 public:
  // Appends a diagnostic of `code` with the severity of its row and returns it, so that the caller
  // can add spans, notes and a fix. The reference is valid until the next Add or Append.
  Diagnostic& Add(DiagnosticCode code, Span span, std::string message);

  // Appends a diagnostic that was built elsewhere.
  void Append(Diagnostic diagnostic);

  // Appends all of `other`.
  void Append(const DiagnosticList& other);

  // Orders by file (in order of first occurrence), line, column and code; equal entries are merged.
  void Sort();

  bool HasErrors() const { return ErrorCount() > 0; }
  size_t ErrorCount() const;
  size_t WarningCount() const;
  const std::vector<Diagnostic>& entries() const { return entries_; }
  std::vector<Diagnostic>& mutable_entries() { return entries_; }

 private:
  std::vector<Diagnostic> entries_;
};

// Text of each file that spans may point into, by the name that the spans use.
using SourceTexts = std::map<std::string, std::string>;

// The line `line` (from 1) of `file` without its line break, if both are known.
std::optional<std::string> SourceLine(const SourceTexts& sources, const std::string& file,
                                      int line);

// "job.yaml:12:5", "job.yaml" or "" as far as the place is known; "command line, --set number 1,
// column 9" for an override.
std::string PlaceOf(const Span& span);

}  // namespace planc

#endif  // PLANC_COMPILER_DIAGNOSTICS_DIAGNOSTIC_H_
