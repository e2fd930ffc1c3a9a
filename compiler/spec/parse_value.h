#ifndef PLANC_COMPILER_SPEC_PARSE_VALUE_H_
#define PLANC_COMPILER_SPEC_PARSE_VALUE_H_

#include <string>

#include "compiler/diagnostics/diagnostic.h"
#include "compiler/spec/job_schema.h"
#include "compiler/spec/node.h"
#include "google/protobuf/message.h"

namespace planc {

// Reads `node` as the value of `key` and sets the field in `section`. Reports wrong types, bad
// numbers, ranges, unknown words, control characters and empty required lists; sets nothing then.
// A path is made relative to the folder of the file that the node comes from.
void SetFromNode(const JobKey& key, const Node& node, google::protobuf::Message& section,
                 DiagnosticList& diagnostics);

// Whether the YAML text `text` is a value of `key`.
bool IsValueOf(const JobKey& key, const std::string& text);

// "write for example KEY: EXAMPLE", or "" for a key without example and default.
std::string ExampleOf(const JobKey& key);

// The range of a key in words: ">= 1 and <= 8"; "" if it has none.
std::string RangeOf(const JobKey& key);

}  // namespace planc

#endif  // PLANC_COMPILER_SPEC_PARSE_VALUE_H_
