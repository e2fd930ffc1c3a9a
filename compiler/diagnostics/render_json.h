#ifndef PLANC_COMPILER_DIAGNOSTICS_RENDER_JSON_H_
#define PLANC_COMPILER_DIAGNOSTICS_RENDER_JSON_H_

#include <string>

#include "compiler/diagnostics/diagnostic.h"

namespace planc {

// For programs (columns and lengths count characters; of an override the file is "--set" and the
// line the number of the argument): {"version": 1, "errors": N, "warnings": N, "diagnostics":
// [{code, severity, message, file, line, column, length, label, secondary: [...], notes: [...],
// fix}, ...]}.
std::string RenderJson(const DiagnosticList& list);

// SARIF 2.1.0, which code hosts read: one run, one rule for each code that occurs. Columns count
// UTF-16 units, for which `sources` is needed; without it lines are taken to be ASCII. An override
// has a logical location only: it is in no file.
std::string RenderSarif(const DiagnosticList& list, const SourceTexts& sources = {});

// One workflow command per diagnostic, which GitHub shows beside the line in a pull request:
// "::error file=F,line=L,col=C,title=PL0123::message". Columns count characters. What is in no file
// has no file; an override is named in the message.
std::string RenderGithub(const DiagnosticList& list, const SourceTexts& sources = {});

}  // namespace planc

#endif  // PLANC_COMPILER_DIAGNOSTICS_RENDER_JSON_H_
