#include "planc/command_table.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace planc {
namespace {

FlagInfo MakeFlag(const std::string& names, FlagKind kind, const std::string& value,
                  const std::string& default_value, const std::string& sentence) {
  FlagInfo flag;
  const size_t bar = names.find('|');
  flag.name = names.substr(0, bar);
  if (bar != std::string::npos) flag.short_name = names.substr(bar + 1);
  flag.kind = kind;
  flag.value = value;
  flag.default_value = default_value;
  flag.sentence = sentence;
  if (kind == FlagKind::kChoice || kind == FlagKind::kChoices) {
    for (const auto choice : absl::StrSplit(value, '|')) flag.choices.emplace_back(choice);
  }
  return flag;
}

// The rows, in order; those before the first command belong to every command.
class TableBuilder {
 public:
  TableBuilder() {
#define PLANC_COMMAND(function, name, arguments, summary, description) \
  commands_.push_back({name, arguments, summary, description, {}, {}, {}});
#define PLANC_ACTION(name, arguments, summary) \
  commands_.back().actions.push_back({name, arguments, summary, {}});
#define PLANC_FLAG(name, kind, value, default_value, sentence) \
  Place()->push_back(MakeFlag(name, FlagKind::k##kind, value, default_value, sentence));
#define PLANC_EXAMPLE(command, sentence) commands_.back().examples.push_back({command, sentence});
#include "planc/commands.def"
  }

  std::vector<CommandInfo> Commands() { return std::move(commands_); }
  std::vector<FlagInfo> Common() { return std::move(common_); }

 private:
  std::vector<FlagInfo>* Place() {
    if (commands_.empty()) return &common_;
    CommandInfo& command = commands_.back();
    return command.actions.empty() ? &command.flags : &command.actions.back().flags;
  }

  std::vector<CommandInfo> commands_;
  std::vector<FlagInfo> common_;
};

template <typename Info>
const Info* Find(const std::vector<Info>& rows, const std::string& name) {
  const auto found =
      std::find_if(rows.begin(), rows.end(), [&](const Info& row) { return row.name == name; });
  return found == rows.end() ? nullptr : &*found;
}

}  // namespace

const std::vector<CommandInfo>& AllCommands() {
  static const auto* const commands = new std::vector<CommandInfo>(TableBuilder().Commands());
  return *commands;
}

const std::vector<FlagInfo>& CommonFlags() {
  static const auto* const flags = new std::vector<FlagInfo>(TableBuilder().Common());
  return *flags;
}

const CommandInfo* FindCommand(const std::string& name) { return Find(AllCommands(), name); }

const ActionInfo* FindAction(const CommandInfo& command, const std::string& name) {
  return Find(command.actions, name);
}

std::vector<FlagInfo> FlagsOf(const CommandInfo& command, const ActionInfo* action) {
  std::vector<FlagInfo> flags = command.flags;
  for (const ActionInfo& one : command.actions) {
    if (action != nullptr && action != &one) continue;
    flags.insert(flags.end(), one.flags.begin(), one.flags.end());
  }
  flags.insert(flags.end(), CommonFlags().begin(), CommonFlags().end());
  return flags;
}

std::string FlagUsage(const FlagInfo& flag) {
  if (flag.kind == FlagKind::kSwitch) return flag.name;
  if (flag.kind == FlagKind::kSetting) return absl::StrCat(flag.name, " ", flag.value);
  if (flag.kind != FlagKind::kChoices) return absl::StrCat(flag.name, "=", flag.value);
  return absl::StrCat(flag.name, "=", absl::StrJoin(flag.choices, ","));
}

std::string ShortFlagUsage(const FlagInfo& flag) {
  if (flag.short_name.empty()) return "";
  if (flag.kind == FlagKind::kSwitch) return flag.short_name;
  return absl::StrCat(flag.short_name, " ", flag.value);
}

}  // namespace planc
