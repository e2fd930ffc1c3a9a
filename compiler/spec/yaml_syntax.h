#ifndef PLANC_COMPILER_SPEC_YAML_SYNTAX_H_
#define PLANC_COMPILER_SPEC_YAML_SYNTAX_H_

#include <string>

#include "compiler/diagnostics/diagnostic.h"

namespace planc {

// Reports what makes `text` no text of a job file: a plan, other binary data, bytes that are not
// UTF-8. Nothing else can be said about such a file.
void CheckIsText(const std::string& file, const std::string& text, DiagnosticList& diagnostics);

// Reports mistakes that YAML readers take for something else: quotes that do not end on their
// line, tabs that indent, `=` for `:`, `[section]` for `section:`. Each kind once.
// `line_offset` is added to every line.
void CheckYamlText(const std::string& file, const std::string& text, int line_offset,
                   DiagnosticList& diagnostics);

// Reports why the YAML reader stopped at `line` and byte `column` (both from 0) with `reason`: the
// usual mistake that explains it, at its own place, or else the reason itself.
void ReportSyntaxError(const std::string& file, const std::string& text, int line_offset, int line,
                       int column, const std::string& reason, DiagnosticList& diagnostics);

}  // namespace planc

#endif  // PLANC_COMPILER_SPEC_YAML_SYNTAX_H_
