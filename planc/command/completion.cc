// planc completion: completion of the command line, for shells.
#include <string>
#include <vector>

#include "planc/command/completion_scripts.h"
#include "planc/command/completion_words.h"
#include "planc/commands.h"
#include "planc/flags.h"

namespace planc {

int RunCompletion(const std::vector<std::string>& args, std::ostream& out, std::ostream& err) {
  const absl::StatusOr<Flags> flags = ParseFlags("completion", args);
  if (!flags.ok()) return UsageError("completion", flags.status(), err);
  const std::string& action = flags->positional[0];
  const std::vector<std::string> words(flags->positional.begin() + 1, flags->positional.end());
  if (action == "words") {
    out << CompletionText(Complete(words));
    return kExitOk;
  }
  if (!words.empty()) return UsageError("completion", action + " takes no argument", err);
  out << CompletionScript(action);
  return kExitOk;
}

}  // namespace planc
