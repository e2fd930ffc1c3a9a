#ifndef PLANC_COMPILER_SPEC_RESOLVE_JOB_H_
#define PLANC_COMPILER_SPEC_RESOLVE_JOB_H_

#include <set>
#include <string>

#include "compiler/diagnostics/diagnostic.h"
#include "compiler/spec/parse_job.h"
#include "schemas/job_spec.h"

namespace planc {

// Completes `parsed` from the preset and the defaults, and reports required keys that are missing,
// unknown presets and devices, and unusable job names. `job_file` is the place of errors about keys
// that are nowhere written. Every completed key gets an origin.
void FillKeys(const std::string& job_file, ParsedJob& parsed, DiagnosticList& diagnostics);

// Computes the keys that follow from others: head_dim, kv_heads, the auto axis, stage_layers,
// directories, ... Returns the keys that have no solution; those are reported, and left at values
// that no rule may use.
// REQUIRES: FillKeys reported no error.
std::set<std::string> DeriveKeys(ParsedJob& parsed, DiagnosticList& diagnostics);

}  // namespace planc

#endif  // PLANC_COMPILER_SPEC_RESOLVE_JOB_H_
