#ifndef PLANC_COMPILER_SPEC_PARSE_JOB_H_
#define PLANC_COMPILER_SPEC_PARSE_JOB_H_

#include <map>
#include <set>
#include <string>

#include "compiler/diagnostics/diagnostic.h"
#include "compiler/spec/job_schema.h"
#include "compiler/spec/node.h"
#include "schemas/job.pb.h"
#include "schemas/job_spec.h"

namespace planc {

// What was written, before anything is filled in.
struct ParsedJob {
  proto::Job job;
  std::map<std::string, Origin> origins;  // of the keys that were given a usable value
  std::map<std::string, Span> sections;   // place of each section that was given
  std::set<std::string> excused;          // keys without value for which an error accounts
};

// Turns a node tree into a Job by reflection over job.proto. Reports unknown keys, wrong types, bad
// numbers, values out of range, unknown words, empty values and lists; whatever is reported is left
// unset, without origin, and excused.
ParsedJob ParseJob(const Node& root, DiagnosticList& diagnostics);

// Sets the field of `key` in `section` from the YAML text of its default in job.proto. Defaults are
// part of the program: a bad one is a broken invariant that a test finds; returns false for it.
bool SetFromDefault(const JobKey& key, google::protobuf::Message& section);

// The place where a value is written; no place for presets, defaults and derived values.
Span SpanOf(const Origin& origin);

}  // namespace planc

#endif  // PLANC_COMPILER_SPEC_PARSE_JOB_H_
