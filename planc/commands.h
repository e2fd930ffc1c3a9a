#ifndef PLANC_PLANC_COMMANDS_H_
#define PLANC_PLANC_COMMANDS_H_

#include <ostream>
#include <string>
#include <vector>

#include "schemas/exit_code.h"

namespace planc {

// One function for each row of commands.def: `args` without the command's name; results to `out`,
// diagnostics to `err`; returns an ExitCode.
#define PLANC_COMMAND(function, name, arguments, summary, description) \
  int Run##function(const std::vector<std::string>& args, std::ostream& out, std::ostream& err);
#include "planc/commands.def"

}  // namespace planc

#endif  // PLANC_PLANC_COMMANDS_H_
