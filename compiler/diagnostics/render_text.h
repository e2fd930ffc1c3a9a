#ifndef PLANC_COMPILER_DIAGNOSTICS_RENDER_TEXT_H_
#define PLANC_COMPILER_DIAGNOSTICS_RENDER_TEXT_H_

#include <string>

#include "compiler/diagnostics/diagnostic.h"

namespace planc {

// For people: level[code]: message, the place, the source line with a caret, the other places,
// notes and help; at most 100 columns. A closing line counts errors and warnings. `colour` adds
// terminal colours.
std::string RenderText(const DiagnosticList& list, const SourceTexts& sources, bool colour);

// "error" or "warning".
std::string SeverityText(Severity severity);

// Breaks `text` at blanks so that no line is longer than 100 columns; lines after the first start
// with `indent` blanks. `used` columns are taken in the first line already.
std::string WrapText(const std::string& text, int used, int indent);

}  // namespace planc

#endif  // PLANC_COMPILER_DIAGNOSTICS_RENDER_TEXT_H_
