#ifndef PLANC_COMPILER_SPEC_RESOLVE_JOB_H_
#define PLANC_COMPILER_SPEC_RESOLVE_JOB_H_

#include <set>
#include <string>

#include "compiler/diagnostics/diagnostic.h"
#include "compiler/spec/parse_job.h"
#include "schemas/job_spec.h"

namespace planc {

// Completes `parsed` from the preset and the defaults, and reports required keys that are missing,
// unknown presets and devices, and unusable job names; keys that another error accounts for are
// neither filled nor reported. `job_file` is the place of errors about keys
// that are nowhere written. Every completed key gets an origin.
void FillKeys(const std::string& job_file, ParsedJob& parsed, DiagnosticList& diagnostics);

// Computes the keys that follow from others: head_dim, kv_heads, the auto axis, stage_layers,
// directories, ... A key is derived only from keys that have usable values. Returns the keys that
// have an origin but no solution; those are reported, and left at values that no rule may use.
std::set<std::string> DeriveKeys(ParsedJob& parsed, DiagnosticList& diagnostics);

}  // namespace planc

#endif  // PLANC_COMPILER_SPEC_RESOLVE_JOB_H_
