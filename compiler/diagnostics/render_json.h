#ifndef PLANC_COMPILER_DIAGNOSTICS_RENDER_JSON_H_
#define PLANC_COMPILER_DIAGNOSTICS_RENDER_JSON_H_

#include <string>

#include "compiler/diagnostics/diagnostic.h"

namespace planc {

// For programs: {"version": 1, "errors": N, "warnings": N, "diagnostics": [{code, severity,
// message, file, line, column, length, label, secondary: [...], notes: [...], fix}, ...]}.
std::string RenderJson(const DiagnosticList& list);

// SARIF 2.1.0, which code hosts read: one run, one rule for each code that occurs.
std::string RenderSarif(const DiagnosticList& list);

// One workflow command per diagnostic, which GitHub shows beside the line in a pull request:
// "::error file=F,line=L,col=C,title=PL0123::message".
std::string RenderGithub(const DiagnosticList& list);

}  // namespace planc

#endif  // PLANC_COMPILER_DIAGNOSTICS_RENDER_JSON_H_
