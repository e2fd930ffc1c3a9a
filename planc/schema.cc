// planc schema: the JSON Schema of the job file, or its reference in Markdown.
#include <string>
#include <vector>

#include "planc/commands.h"
#include "planc/flags.h"
#include "planc/keys/job_reference.h"

namespace planc {

int RunSchema(const std::vector<std::string>& args, std::ostream& out, std::ostream& err) {
  const absl::StatusOr<Flags> flags = ParseFlags(args, {"--format"}, {});
  absl::Status problem = flags.status();
  if (problem.ok() && !flags->positional.empty()) {
    problem = absl::InvalidArgumentError("takes no argument");
  }
  const std::string format = flags.ok() ? flags->Get("--format", "json") : "";
  if (problem.ok()) problem = CheckChoices("--format", {format}, {"json", "markdown"});
  if (!problem.ok()) {
    err << "planc schema: " << problem.message() << "\n"
        << "usage: planc schema [--format=json|markdown]\n";
    return kExitJobError;
  }
  out << (format == "json" ? JobJsonSchema() : JobReferenceMarkdown());
  return kExitOk;
}

}  // namespace planc
