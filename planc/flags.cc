#include "planc/flags.h"

#include <glog/logging.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "compiler/spec/suggest.h"
#include "planc/help_text.h"
#include "planc/text.h"
#include "schemas/exit_code.h"
#include "schemas/status.h"

namespace planc {
namespace {

bool Contains(const std::vector<std::string>& list, const std::string& value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

std::string Suggestion(const std::string& word, const std::vector<std::string>& candidates) {
  const std::string nearest = Nearest(word, candidates);
  return nearest.empty() ? "" : absl::StrCat("; did you mean `", nearest, "`?");
}

const FlagInfo* FindFlag(const std::vector<FlagInfo>& flags, const std::string& name) {
  const auto found = std::find_if(flags.begin(), flags.end(), [&](const FlagInfo& flag) {
    return name == flag.name || name == flag.short_name;
  });
  return found == flags.end() ? nullptr : &*found;
}

absl::Status UnknownFlag(const std::string& name, const std::vector<FlagInfo>& flags) {
  std::string suggestion;
  if (name.size() > 2) {  // any two short flags are alike
    std::vector<std::string> names;
    for (const FlagInfo& flag : flags) names.push_back(flag.name);
    suggestion = Suggestion(name, names);
  }
  return absl::InvalidArgumentError(absl::StrCat("there is no flag `", name, "`", suggestion));
}

absl::Status CheckValue(const FlagInfo& flag, const std::string& value) {
  if (flag.kind == FlagKind::kChoice) return CheckChoices(flag.name, {value}, flag.choices);
  if (flag.kind != FlagKind::kChoices) return absl::OkStatus();
  return CheckChoices(flag.name, absl::StrSplit(value, ','), flag.choices);
}

// That the first positional argument is an action, which takes the flags that were given.
absl::Status CheckAction(const CommandInfo& command, const Flags& flags) {
  if (command.actions.empty()) return absl::OkStatus();
  std::vector<std::string> names;
  for (const ActionInfo& action : command.actions) names.push_back(action.name);
  if (flags.positional.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("what shall it do? One of ", absl::StrJoin(names, ", ")));
  }
  PLANC_RETURN_IF_ERROR(CheckChoices("action", {flags.positional[0]}, names));
  const std::vector<FlagInfo> taken = FlagsOf(command, FindAction(command, flags.positional[0]));
  for (const FlagInfo& flag : FlagsOf(command, nullptr)) {
    if (!flags.Has(flag.name) || FindFlag(taken, flag.name) != nullptr) continue;
    return absl::InvalidArgumentError(absl::StrCat(flags.positional[0], " takes no ", flag.name));
  }
  return absl::OkStatus();
}

}  // namespace

Flags::Flags(const std::vector<FlagInfo>& known) {
  for (const FlagInfo& flag : known) known_[flag.name] = flag;
}

const FlagInfo& Flags::InfoOf(const std::string& name) const {
  const auto found = known_.find(name);
  CHECK(found != known_.end()) << name << " is not in planc/commands.def";
  return found->second;
}

bool Flags::Has(const std::string& name) const { return values_.count(InfoOf(name).name) != 0; }

std::string Flags::Get(const std::string& name) const {
  const FlagInfo& flag = InfoOf(name);
  const auto found = values_.find(name);
  return found == values_.end() ? flag.default_value : found->second.back();
}

std::vector<std::string> Flags::All(const std::string& name) const {
  const auto found = values_.find(InfoOf(name).name);
  return found == values_.end() ? std::vector<std::string>() : found->second;
}

std::vector<std::string> Flags::List(const std::string& name) const {
  std::vector<std::string> values = All(name);
  if (values.empty()) values.push_back(InfoOf(name).default_value);
  std::vector<std::string> list;
  for (const std::string& value : values) {
    for (const auto piece : absl::StrSplit(value, ',')) list.emplace_back(piece);
  }
  return list;
}

void Flags::Add(const std::string& name, const std::string& value) {
  values_[InfoOf(name).name].push_back(value);
}

absl::StatusOr<Flags> ParseFlags(const CommandInfo& command, const std::vector<std::string>& args) {
  const std::vector<FlagInfo> known = FlagsOf(command, nullptr);
  Flags flags(known);
  for (size_t i = 0; i < args.size(); ++i) {
    const std::string& arg = args[i];
    if (arg == "--") {
      flags.positional.insert(flags.positional.end(), args.begin() + i + 1, args.end());
      break;
    }
    if (arg.size() < 2 || arg[0] != '-') {
      flags.positional.push_back(arg);
      continue;
    }
    const size_t equals = arg.find('=');
    const std::string name = arg.substr(0, equals);
    const FlagInfo* const flag = FindFlag(known, name);
    if (flag == nullptr) return UnknownFlag(name, known);
    if (flag->kind == FlagKind::kSwitch) {
      if (equals != std::string::npos) {
        return absl::InvalidArgumentError(absl::StrCat(name, " takes no value"));
      }
      flags.Add(flag->name, "");
      if (flag->name == "--help") return flags;
      continue;
    }
    if (equals == std::string::npos && i + 1 == args.size()) {
      return absl::InvalidArgumentError(absl::StrCat(name, " needs a value"));
    }
    const std::string value = equals == std::string::npos ? args[++i] : arg.substr(equals + 1);
    PLANC_RETURN_IF_ERROR(CheckValue(*flag, value));
    flags.Add(flag->name, value);
  }
  PLANC_RETURN_IF_ERROR(CheckAction(command, flags));
  return flags;
}

absl::StatusOr<Flags> ParseFlags(const std::string& name, const std::vector<std::string>& args) {
  const CommandInfo* const command = FindCommand(name);
  CHECK(command != nullptr) << name << " is not in planc/commands.def";
  return ParseFlags(*command, args);
}

absl::Status CheckChoices(const std::string& flag, const std::vector<std::string>& chosen,
                          const std::vector<std::string>& supported) {
  for (const std::string& value : chosen) {
    if (Contains(supported, value)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(flag, " `", value, "` is not supported", Suggestion(value, supported),
                     " (supported: ", absl::StrJoin(supported, ", "), ")"));
  }
  return absl::OkStatus();
}

int UsageError(const std::string& command, const std::string& problem, std::ostream& err) {
  const CommandInfo* const info = FindCommand(command);
  CHECK(info != nullptr) << command << " is not in planc/commands.def";
  err << Wrap(absl::StrCat("planc ", command, ": ", problem), 2) << "\n"
      << UsageText(*info) << "`planc help " << command << "` explains it\n";
  return kExitJobError;
}

int UsageError(const std::string& command, const absl::Status& problem, std::ostream& err) {
  return UsageError(command, std::string(problem.message()), err);
}

}  // namespace planc
