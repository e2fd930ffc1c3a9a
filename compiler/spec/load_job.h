#ifndef PLANC_COMPILER_SPEC_LOAD_JOB_H_
#define PLANC_COMPILER_SPEC_LOAD_JOB_H_

#include <map>
#include <string>
#include <vector>

#include "compiler/diagnostics/diagnostic.h"
#include "schemas/job_spec.h"

namespace planc {

struct LoadResult {
  JobSpec spec;                // complete if ok
  DiagnosticList diagnostics;  // sorted; may hold warnings if ok
  SourceTexts sources;         // texts of all files read and of --set, for rendering diagnostics
  bool ok = false;             // no errors
  bool partial = false;        // a fragment (partial: true) without errors; not ok, since no job
};

// Reads, resolves and validates the job file `path` with the overrides `sets` ("a.b=value").
// A fragment is checked as far as its keys, types and ranges go. Needs nothing but the job file and
// its includes: data files are not looked at. Never fails otherwise than by diagnostics, whatever
// the input.
LoadResult LoadJob(const std::string& path, const std::vector<std::string>& sets);

// The same with files from memory: `files` maps paths to texts, and `path` is one of them.
LoadResult LoadJobText(const std::string& path, const std::map<std::string, std::string>& files,
                       const std::vector<std::string>& sets);

}  // namespace planc

#endif  // PLANC_COMPILER_SPEC_LOAD_JOB_H_
