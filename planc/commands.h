#ifndef PLANC_PLANC_COMMANDS_H_
#define PLANC_PLANC_COMMANDS_H_

#include <ostream>
#include <string>
#include <vector>

namespace planc {

// Exit codes of every command. Slurm must not requeue 2 to 4.
enum ExitCode : int {
  kExitOk = 0,
  kExitInternal = 1,
  kExitJobError = 2,
  kExitDoesNotFit = 3,
  kExitUnsafePlan = 4,
  kExitDifferent = 5,
  kExitTrainingFault = 6,
  kExitPeerLost = 7,
  kExitStopped = 8,  // a signal asked to stop: a checkpoint was written, run again to go on
};

// One function for each row of commands.def: `args` without the command's name; results to `out`,
// diagnostics to `err`; returns an ExitCode.
#define PLANC_COMMAND(function, name, arguments, summary) \
  int Run##function(const std::vector<std::string>& args, std::ostream& out, std::ostream& err);
#include "planc/commands.def"
#undef PLANC_COMMAND

}  // namespace planc

#endif  // PLANC_PLANC_COMMANDS_H_
