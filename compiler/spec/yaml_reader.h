#ifndef PLANC_COMPILER_SPEC_YAML_READER_H_
#define PLANC_COMPILER_SPEC_YAML_READER_H_

#include <cstddef>
#include <optional>
#include <string>

#include "compiler/diagnostics/diagnostic.h"
#include "compiler/spec/node.h"

namespace planc {

inline constexpr size_t kMaxFileBytes = size_t{1} << 20;
inline constexpr int kMaxNesting = 32;

// Reads one YAML document. `file` names it in spans; `line_offset` is added to every line, so that
// a fragment can be placed inside a larger text.
// Reports data that is no text, syntax errors, duplicate keys, and everything of YAML that job
// files do not use: several documents, anchors, aliases, tags, merge keys, quoted texts of several
// lines, keys that are not plain text. Returns the tree if nothing was reported; an empty document
// is a kNull node.
std::optional<Node> ReadYaml(const std::string& file, const std::string& text, int line_offset,
                             DiagnosticList& diagnostics);

}  // namespace planc

#endif  // PLANC_COMPILER_SPEC_YAML_READER_H_
