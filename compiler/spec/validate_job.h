#ifndef PLANC_COMPILER_SPEC_VALIDATE_JOB_H_
#define PLANC_COMPILER_SPEC_VALIDATE_JOB_H_

#include <set>
#include <string>

#include "compiler/diagnostics/diagnostic.h"
#include "compiler/spec/parse_job.h"

namespace planc {

// Checks every rule between keys and reports each that fails, with the equation, where its values
// are written, and the nearest values that satisfy it. Rules that read a key of `unsolved` are
// skipped: that key is reported already. `job_file` is the place if no key is written anywhere.
// REQUIRES: FillKeys and DeriveKeys ran.
void ValidateJob(const std::string& job_file, const ParsedJob& parsed,
                 const std::set<std::string>& unsolved, DiagnosticList& diagnostics);

}  // namespace planc

#endif  // PLANC_COMPILER_SPEC_VALIDATE_JOB_H_
