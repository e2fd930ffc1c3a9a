// planc schema: the JSON Schema of the job file, or its reference in Markdown.
#include <string>
#include <vector>

#include "planc/commands.h"
#include "planc/flags.h"
#include "planc/keys/job_reference.h"

namespace planc {

int RunSchema(const std::vector<std::string>& args, std::ostream& out, std::ostream& err) {
  const absl::StatusOr<Flags> flags = ParseFlags("schema", args);
  if (!flags.ok()) return UsageError("schema", flags.status(), err);
  if (!flags->positional.empty()) return UsageError("schema", "takes no argument", err);
  out << (flags->Get("--format") == "json" ? JobJsonSchema() : JobReferenceMarkdown());
  return kExitOk;
}

}  // namespace planc
