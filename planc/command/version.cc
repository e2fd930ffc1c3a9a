// planc version: versions of everything linked in, and the instruction set of this machine. Nothing
// else goes into the output, so two builds of one source print the same on one machine.
#include <string>
#include <vector>

#include "kernels/instruction_set.h"
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
  const absl::StatusOr<host::InstructionSet> set = host::DetectInstructionSet();
  table.Add(
      {"instruction set", set.ok() ? host::InstructionSetName(*set) : "none that planc uses"});
  out << table.Text(0);
  return kExitOk;
}

}  // namespace planc
