#ifndef PLANC_PLANC_HELP_TEXT_H_
#define PLANC_PLANC_HELP_TEXT_H_

#include <string>

#include "planc/command_table.h"

namespace planc {

// What `planc help` prints: all commands, exit codes.
std::string OverviewText();
// What `planc help COMMAND` prints. With `action`, what `planc help COMMAND ACTION` does.
std::string HelpText(const CommandInfo& command, const ActionInfo* action);
// "usage: planc plan JOB|PLAN [-o, --output=FILE] ...", a line for each action.
std::string UsageText(const CommandInfo& command);

// Manual pages in the man macros of roff: planc(1), and planc-COMMAND(1). `version` stands in
// their footer.
std::string OverviewManPage(const std::string& version);
std::string ManPage(const CommandInfo& command, const std::string& version);

}  // namespace planc

#endif  // PLANC_PLANC_HELP_TEXT_H_
