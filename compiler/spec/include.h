#ifndef PLANC_COMPILER_SPEC_INCLUDE_H_
#define PLANC_COMPILER_SPEC_INCLUDE_H_

#include <optional>
#include <string>
#include <vector>

#include "compiler/diagnostics/diagnostic.h"
#include "compiler/spec/file_reader.h"
#include "compiler/spec/node.h"

namespace planc {

inline constexpr int kMaxFilesOfJob = 64;

// The key of a fragment; included files keep it to themselves.
inline constexpr char kPartialKey[] = "partial";

// `path` as seen from the working directory, if `from_file` wrote it: relative paths start at the
// folder of `from_file`. Lexically normalised; the empty file name and --set mean the working
// directory.
std::string PathFrom(const std::string& from_file, const std::string& path);

// Reads the job file `path` and everything it includes. Included values come first in the order of
// the list; the including file's own values replace them. Every text read is added to `sources`.
// Returns nullopt after an error.
std::optional<Node> ReadWithIncludes(const std::string& path, const FileReader& reader,
                                     SourceTexts& sources, DiagnosticList& diagnostics);

// Puts `sets` (each "a.b=value", value in YAML) on top of `root`. The arguments become the lines of
// the source text kSetFile.
void ApplySets(const std::vector<std::string>& sets, Node& root, SourceTexts& sources,
               DiagnosticList& diagnostics);

}  // namespace planc

#endif  // PLANC_COMPILER_SPEC_INCLUDE_H_
