#include "planc/command/completion_words.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "compiler/catalog/devices.h"
#include "compiler/catalog/models.h"
#include "compiler/diagnostics/diagnostic.h"
#include "compiler/spec/job_schema.h"
#include "planc/command_table.h"

namespace planc {
namespace {

using google::protobuf::FieldDescriptor;

void AddCommands(CompletionWords* found) {
  for (const CommandInfo& command : AllCommands()) {
    found->words.push_back({command.name, command.summary});
  }
}

void AddActions(const CommandInfo& command, CompletionWords* found) {
  for (const ActionInfo& action : command.actions) {
    found->words.push_back({action.name, action.summary});
  }
}

void AddFiles(const std::vector<std::string>& suffixes, CompletionWords* found) {
  found->files = true;
  found->suffixes.insert(found->suffixes.end(), suffixes.begin(), suffixes.end());
}

// "mesh.tp=" for every key, or the values of the key that `text` names.
void AddSettings(const std::string& text, const std::string& prefix, CompletionWords* found) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos) {
    for (const JobKey& key : AllJobKeys()) {
      found->words.push_back({absl::StrCat(prefix, key.path, "="), key.key->doc()});
    }
    return;
  }
  const JobKey* const key = FindJobKey(text.substr(0, equals));
  if (key == nullptr) return;
  std::vector<std::string> values;
  if (key->field->cpp_type() == FieldDescriptor::CPPTYPE_ENUM) {
    values = EnumTexts(*key->field->enum_type());
  } else if (key->field->cpp_type() == FieldDescriptor::CPPTYPE_BOOL) {
    values = {"true", "false"};
  } else if (key->path == "model.preset") {
    for (const ModelPreset& preset : ModelPresets()) values.push_back(preset.name);
  } else if (key->path == "cluster.device") {
    for (const DeviceSpec& device : Devices()) values.push_back(device.name);
  }
  for (const std::string& value : values) {
    found->words.push_back({absl::StrCat(prefix, key->path, "=", value), ""});
  }
}

// Values of `flag`; `prefix` is what stands before the value in the word, `text` after it.
void AddValues(const FlagInfo& flag, const std::string& prefix, const std::string& text,
               CompletionWords* found) {
  switch (flag.kind) {
    case FlagKind::kChoice:
      for (const std::string& choice : flag.choices) {
        found->words.push_back({prefix + choice, ""});
      }
      return;
    case FlagKind::kChoices: {
      const std::string before = text.substr(0, text.rfind(',') + 1);
      for (const std::string& choice : flag.choices) {
        found->words.push_back({absl::StrCat(prefix, before, choice), ""});
      }
      return;
    }
    case FlagKind::kSetting:
      return AddSettings(text, prefix, found);
    case FlagKind::kFile:
      return AddFiles({}, found);
    case FlagKind::kJobFile:
      return AddFiles({".yaml", ".yml", ".plan"}, found);
    case FlagKind::kCheckpoint:
      found->folders = true;
      if (absl::StrContains(flag.value, "auto")) found->words.push_back({prefix + "auto", ""});
      return;
    case FlagKind::kFolder:
      found->folders = true;
      return;
    case FlagKind::kSwitch:
    case FlagKind::kText:
    case FlagKind::kNumber:
    case FlagKind::kSize:
      return;
  }
}

void AddFlags(const std::vector<FlagInfo>& flags, CompletionWords* found) {
  for (const FlagInfo& flag : flags) {
    const bool glued = flag.kind != FlagKind::kSwitch && flag.kind != FlagKind::kSetting;
    found->words.push_back({absl::StrCat(flag.name, glued ? "=" : ""), flag.sentence});
    if (!flag.short_name.empty()) found->words.push_back({flag.short_name, flag.sentence});
  }
}

// What a word of commands.def's `arguments` stands for: "JOB|PLAN", "[COMMAND", "PATH...".
void AddArgument(const std::string& place, const std::vector<std::string>& before,
                 CompletionWords* found) {
  for (const auto& piece : absl::StrSplit(place, absl::ByAnyChar("|[]."), absl::SkipEmpty())) {
    const std::string name(piece);
    if (name == "JOB") AddFiles({".yaml", ".yml"}, found);
    if (name == "PLAN") AddFiles({".plan"}, found);
    if (name == "CHECKPOINT" || name == "FOLDER") found->folders = true;
    if (name == "COMMAND") AddCommands(found);
    if (name == "ACTION" && !before.empty()) {
      const CommandInfo* const command = FindCommand(before.back());
      if (command != nullptr) AddActions(*command, found);
    }
    if (name == "CODE") {
      for (const DiagnosticInfo& info : AllDiagnostics()) {
        found->words.push_back({info.id, info.title});
      }
    }
    if (name == "KEY") {
      for (const JobKey& key : AllJobKeys()) found->words.push_back({key.path, key.key->doc()});
    }
  }
}

const FlagInfo* FlagOf(const std::vector<FlagInfo>& flags, const std::string& name) {
  const auto found = std::find_if(flags.begin(), flags.end(), [&](const FlagInfo& flag) {
    return name == flag.name || name == flag.short_name;
  });
  return found == flags.end() ? nullptr : &*found;
}

// What `command` takes as the word after `before`.
CompletionWords CompleteArgument(const CommandInfo& command, const std::vector<std::string>& before,
                                 const std::string& current) {
  CompletionWords found;
  const std::vector<FlagInfo> all = FlagsOf(command, nullptr);
  std::vector<std::string> positional;
  const FlagInfo* open = nullptr;  // the flag whose value comes next
  for (const std::string& word : before) {
    if (open != nullptr) {
      open = nullptr;
    } else if (word.size() > 1 && word[0] == '-') {
      const FlagInfo* const flag = FlagOf(all, word);
      if (flag != nullptr && flag->kind != FlagKind::kSwitch) open = flag;
    } else {
      positional.push_back(word);
    }
  }
  if (open != nullptr) {
    AddValues(*open, "", current, &found);
    return found;
  }
  const ActionInfo* const action =
      positional.empty() ? nullptr : FindAction(command, positional[0]);
  if (!current.empty() && current[0] == '-') {
    const size_t equals = current.find('=');
    if (equals == std::string::npos) {
      AddFlags(FlagsOf(command, action), &found);
    } else if (const FlagInfo* const flag = FlagOf(all, current.substr(0, equals))) {
      AddValues(*flag, current.substr(0, equals + 1), current.substr(equals + 1), &found);
    }
    return found;
  }
  if (!command.actions.empty() && positional.empty()) {
    AddActions(command, &found);
    return found;
  }
  const std::string arguments = action == nullptr ? command.arguments : action->arguments;
  const std::vector<std::string> places = absl::StrSplit(arguments, ' ', absl::SkipEmpty());
  const size_t index = positional.size() - (action == nullptr ? 0 : 1);
  if (index < places.size()) {
    AddArgument(places[index], positional, &found);
  } else if (!places.empty() && absl::StrContains(places.back(), "...")) {
    AddArgument(places.back(), positional, &found);
  }
  return found;
}

}  // namespace

CompletionWords Complete(const std::vector<std::string>& words) {
  CompletionWords found;
  if (words.empty()) return found;
  const std::string& current = words.back();
  if (words.size() == 1) {
    AddCommands(&found);
    if (absl::StartsWith(current, "-")) AddFlags(CommonFlags(), &found);
  } else if (const CommandInfo* const command = FindCommand(words[0])) {
    found = CompleteArgument(*command, {words.begin() + 1, words.end() - 1}, current);
  }
  found.words.erase(std::remove_if(found.words.begin(), found.words.end(),
                                   [&](const CompletionWords::Word& word) {
                                     return !absl::StartsWith(word.text, current);
                                   }),
                    found.words.end());
  return found;
}

std::string CompletionText(const CompletionWords& completion) {
  std::string text;
  if (completion.files) {
    text = ":files";
    for (const std::string& suffix : completion.suffixes) absl::StrAppend(&text, " ", suffix);
    text += '\n';
  } else if (completion.folders) {
    text = ":folders\n";
  }
  for (const CompletionWords::Word& word : completion.words) {
    absl::StrAppend(&text, word.text, "\t", word.description, "\n");
  }
  return text;
}

}  // namespace planc
