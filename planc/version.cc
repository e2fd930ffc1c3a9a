// planc version: versions of everything linked in. Nothing else goes into the output, so two builds
// of one source print the same.
#include <string>
#include <vector>

#include "planc/commands.h"
#include "planc/text.h"
#include "planc/versions.h"

namespace planc {

int RunVersion(const std::vector<std::string>& args, std::ostream& out, std::ostream& err) {
  if (!args.empty()) {
    err << "planc version: it takes no arguments\n";
    return kExitJobError;
  }
  TextTable table({"part", "version"});
  for (const auto& [part, version] : LinkedVersions()) table.Add({part, version});
  out << table.Text(0);
  return kExitOk;
}

}  // namespace planc
