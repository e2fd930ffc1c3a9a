// planc help: what the commands do, for people and as manual pages.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "planc/command_table.h"
#include "planc/commands.h"
#include "planc/exit_codes.h"
#include "planc/flags.h"
#include "planc/help_text.h"
#include "planc/load_plan.h"
#include "planc/version.h"
#include "schemas/status.h"

namespace planc {
namespace {

absl::Status WritePages(const std::string& folder) {
  PLANC_RETURN_IF_ERROR(WriteFile(folder + "/planc.1", OverviewManPage(kVersion)));
  for (const CommandInfo& command : AllCommands()) {
    PLANC_RETURN_IF_ERROR(
        WriteFile(absl::StrCat(folder, "/planc-", command.name, ".1"), ManPage(command, kVersion)));
  }
  return absl::OkStatus();
}

template <typename Info>
std::vector<std::string> NamesOf(const std::vector<Info>& rows) {
  std::vector<std::string> names;
  for (const Info& row : rows) names.push_back(row.name);
  return names;
}

}  // namespace

int RunHelp(const std::vector<std::string>& args, std::ostream& out, std::ostream& err) {
  const absl::StatusOr<Flags> flags = ParseFlags("help", args);
  if (!flags.ok()) return UsageError("help", flags.status(), err);
  const std::vector<std::string>& words = flags->positional;
  if (words.size() > 2) return UsageError("help", "it explains one command", err);
  if (flags->Has("--man")) {
    const absl::Status written = WritePages(flags->Get("--man"));
    if (written.ok()) return kExitOk;
    err << "planc help: " << written.message() << "\n";
    return ExitCodeOf(written);
  }
  if (words.empty()) {
    out << OverviewText();
    return kExitOk;
  }
  absl::Status known = CheckChoices("command", {words[0]}, NamesOf(AllCommands()));
  if (!known.ok()) return UsageError("help", known, err);
  const CommandInfo& command = *FindCommand(words[0]);
  if (words.size() == 2) known = CheckChoices("action", {words[1]}, NamesOf(command.actions));
  if (!known.ok()) return UsageError("help", known, err);
  out << HelpText(command, words.size() == 2 ? FindAction(command, words[1]) : nullptr);
  return kExitOk;
}

}  // namespace planc
