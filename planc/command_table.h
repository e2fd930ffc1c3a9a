#ifndef PLANC_PLANC_COMMAND_TABLE_H_
#define PLANC_PLANC_COMMAND_TABLE_H_

#include <string>
#include <vector>

namespace planc {

// What a flag takes. Those of the last line are texts of which completion knows more.
enum class FlagKind {
  kSwitch,   // nothing
  kChoice,   // one of its values
  kChoices,  // some of its values, separated by commas
  kText,
  kNumber,
  kSize,
  kSetting,
  kFile,
  kFolder,
  kJobFile,
  kCheckpoint,
};

// A flag, as commands.def has it.
struct FlagInfo {
  std::string name;        // "--output"
  std::string short_name;  // "-o"; usually ""
  FlagKind kind = FlagKind::kText;
  std::string value;                 // how help shows the value: "FILE"
  std::vector<std::string> choices;  // of kChoice and kChoices
  std::string default_value;         // what Flags::Get returns when the flag is not given
  std::string sentence;
};

// What a command can do, named by its first argument.
struct ActionInfo {
  std::string name;
  std::string arguments;
  std::string summary;
  std::vector<FlagInfo> flags;
};

struct ExampleInfo {
  std::string command;
  std::string sentence;
};

// A command, as commands.def has it.
struct CommandInfo {
  std::string name;
  std::string arguments;  // "JOB|PLAN [PARAMETER]"
  std::string summary;
  std::string description;
  std::vector<FlagInfo> flags;  // of the command whatever the action
  std::vector<ActionInfo> actions;
  std::vector<ExampleInfo> examples;
};

// All rows of commands.def, in its order.
const std::vector<CommandInfo>& AllCommands();
// Flags of every command.
const std::vector<FlagInfo>& CommonFlags();

// The command or action called `name`, or nullptr.
const CommandInfo* FindCommand(const std::string& name);
const ActionInfo* FindAction(const CommandInfo& command, const std::string& name);

// The flags that `command` takes, those of every command last: with `action` its own too, without
// one (nullptr) those of all actions.
std::vector<FlagInfo> FlagsOf(const CommandInfo& command, const ActionInfo* action);

// "--output=FILE", "--set KEY=VALUE", "--profile"; and with the short name: "-o FILE", or "".
std::string FlagUsage(const FlagInfo& flag);
std::string ShortFlagUsage(const FlagInfo& flag);

}  // namespace planc

#endif  // PLANC_PLANC_COMMAND_TABLE_H_
