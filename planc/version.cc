// planc version: versions of everything linked in. Nothing else goes into the output, so two builds
// of one source print the same.
#include <string>
#include <vector>

#include "planc/commands.h"
#include "planc/flags.h"
#include "planc/text.h"
#include "planc/versions.h"

namespace planc {

int RunVersion(const std::vector<std::string>& args, std::ostream& out, std::ostream& err) {
  const absl::StatusOr<Flags> flags = ParseFlags("version", args);
  if (!flags.ok()) return UsageError("version", flags.status(), err);
  if (!flags->positional.empty()) return UsageError("version", "it takes no arguments", err);
  TextTable table({"part", "version"});
  for (const auto& [part, version] : LinkedVersions()) table.Add({part, version});
  out << table.Text(0);
  return kExitOk;
}

}  // namespace planc
