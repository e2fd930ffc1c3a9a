#ifndef PLANC_PLANC_FLAGS_H_
#define PLANC_PLANC_FLAGS_H_

#include <map>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "planc/command_table.h"

namespace planc {

// The arguments of one command, split. Flags go by their long names. Reading a flag that the
// command does not have is a broken invariant.
class Flags {
 public:
  explicit Flags(const std::vector<FlagInfo>& known);

  bool Has(const std::string& name) const;
  // The last value of a flag, or its default.
  std::string Get(const std::string& name) const;
  // All values of a flag, in order.
  std::vector<std::string> All(const std::string& name) const;
  // All values of a flag, or its default, each split at commas.
  std::vector<std::string> List(const std::string& name) const;

  void Add(const std::string& name, const std::string& value);

  // Of a command with actions the first is the action.
  std::vector<std::string> positional;

 private:
  const FlagInfo& InfoOf(const std::string& name) const;

  std::map<std::string, FlagInfo> known_;
  std::map<std::string, std::vector<std::string>> values_;
};

// Splits the arguments of a command, by its rows of commands.def. A flag with a value is
// `--name=value` or `--name value`. Flags may stand anywhere; after `--` everything is positional.
// With --help nothing else is checked.
// Errors: InvalidArgument for a flag that the command, or its action, does not take (with the
// nearest one), for a missing value, for a value given to a switch or not among the choices, and
// for an action that is missing or unknown.
absl::StatusOr<Flags> ParseFlags(const CommandInfo& command, const std::vector<std::string>& args);
// REQUIRES: there is a command `name`.
absl::StatusOr<Flags> ParseFlags(const std::string& name, const std::vector<std::string>& args);

// OK when every one of `chosen` is in `supported`. Errors: InvalidArgument that names the flag, the
// nearest supported value and all of them.
absl::Status CheckChoices(const std::string& flag, const std::vector<std::string>& chosen,
                          const std::vector<std::string>& supported);

// Writes what is wrong with the arguments of `command` and how it is called. Returns the exit code.
int UsageError(const std::string& command, const std::string& problem, std::ostream& err);
int UsageError(const std::string& command, const absl::Status& problem, std::ostream& err);

}  // namespace planc

#endif  // PLANC_PLANC_FLAGS_H_
