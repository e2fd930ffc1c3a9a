#include "planc/help_text.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "planc/exit_code_text.h"
#include "planc/text.h"

namespace planc {
namespace {

constexpr char kTagline[] = "plans, proves and runs transformer training jobs";

// "name arguments", without a blank at the end.
std::string Call(const std::string& name, const std::string& arguments) {
  return arguments.empty() ? name : absl::StrCat(name, " ", arguments);
}

// `text` without places where Wrap breaks it, and what it was.
constexpr char kNoBreak = '\x01';
std::string Solid(std::string text) {
  std::replace(text.begin(), text.end(), ' ', kNoBreak);
  return text;
}
std::string WrapSolid(const std::string& text, int indent) {
  std::string wrapped = Wrap(text, indent);
  std::replace(wrapped.begin(), wrapped.end(), kNoBreak, ' ');
  return wrapped;
}

// One call with its flags, those of every command left out; later lines stand below the arguments.
std::string UsageLine(const std::string& call, const std::vector<FlagInfo>& flags) {
  std::string line = call;
  for (const FlagInfo& flag : flags) {
    const std::string usage = flag.short_name.empty() ? FlagUsage(flag) : ShortFlagUsage(flag);
    absl::StrAppend(&line, " ", Solid(absl::StrCat("[", usage, "]")),
                    flag.kind == FlagKind::kSetting ? "..." : "");
  }
  return WrapSolid(line, call[0] == ' ' ? 0 : 7) + "\n";
}

// "-o FILE, --output=FILE".
std::string BothNames(const FlagInfo& flag) {
  const std::string short_usage = ShortFlagUsage(flag);
  return absl::StrCat(short_usage, short_usage.empty() ? "" : ", ", FlagUsage(flag));
}

std::string FlagsText(const std::vector<FlagInfo>& flags) {
  std::string text;
  for (const FlagInfo& flag : flags) {
    absl::StrAppend(&text, Wrap(absl::StrCat("  ", BothNames(flag)), 4), "\n",
                    Wrap(absl::StrCat("      ", flag.sentence), 0), "\n");
    if (!flag.default_value.empty()) {
      absl::StrAppend(&text, "      Default: ", flag.default_value, "\n");
    }
  }
  return text;
}

std::string ExitCodesText() {
  std::string line = "exit codes:";
  for (const auto& [code, meaning] : ExitCodeTexts()) {
    absl::StrAppend(&line, " ", Solid(absl::StrCat(code, " ", meaning, ";")));
  }
  line.back() = '.';
  return WrapSolid(line, 2) + "\n";
}

// Roff reads backslashes, and dots and quotes at the start of a line; "-" would become a hyphen,
// which nobody can copy.
std::string Roff(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '\\') {
      result += "\\e";
    } else if (c == '-') {
      result += "\\-";
    } else if (c == '\'') {
      result += "\\(aq";
    } else if (c == '`') {
      result += "\\(ga";
    } else {
      result += c;
    }
  }
  return !result.empty() && result[0] == '.' ? "\\&" + result : result;
}

std::string ManHead(const std::string& name, const std::string& summary,
                    const std::string& version) {
  std::string upper = name;
  for (char& c : upper) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return absl::StrCat(".TH ", Roff(upper), " 1 \"\" \"planc ", version, "\" \"planc\"\n.SH NAME\n",
                      Roff(name), " \\- ", Roff(summary), "\n");
}

std::string ManFlags(const std::vector<FlagInfo>& flags) {
  std::string text;
  for (const FlagInfo& flag : flags) {
    absl::StrAppend(&text, ".TP\n.B ", Roff(BothNames(flag)), "\n", Roff(flag.sentence), "\n");
    if (!flag.default_value.empty()) {
      absl::StrAppend(&text, "Default: ", Roff(flag.default_value), ".\n");
    }
  }
  return text;
}

std::string ManExitCodes() {
  std::string text = ".SH EXIT STATUS\n";
  for (const auto& [code, meaning] : ExitCodeTexts()) {
    absl::StrAppend(&text, ".TP\n.B ", code, "\n", Roff(meaning), ".\n");
  }
  return text;
}

}  // namespace

std::string OverviewText() {
  std::string text = absl::StrCat("planc: ", kTagline, "\n\n");
  for (const CommandInfo& command : AllCommands()) {
    absl::StrAppend(&text, absl::StrFormat("  planc %-48s %s\n",
                                           Call(command.name, command.arguments), command.summary));
  }
  return absl::StrCat(text, "\nflags of every command\n", FlagsText(CommonFlags()),
                      "\n`planc help COMMAND` explains a command, `planc explain KEY` a key of the "
                      "job file.\n",
                      ExitCodesText());
}

std::string UsageText(const CommandInfo& command) {
  std::string text;
  const auto add = [&](const std::string& call, const std::vector<FlagInfo>& flags) {
    absl::StrAppend(&text,
                    UsageLine(absl::StrCat(text.empty() ? "usage: " : "       ", call), flags));
  };
  const std::string name = "planc " + command.name;
  if (command.actions.empty()) add(Call(name, command.arguments), command.flags);
  for (const ActionInfo& action : command.actions) {
    std::vector<FlagInfo> flags = command.flags;
    flags.insert(flags.end(), action.flags.begin(), action.flags.end());
    add(Call(absl::StrCat(name, " ", action.name), action.arguments), flags);
  }
  return text;
}

std::string HelpText(const CommandInfo& command, const ActionInfo* action) {
  CommandInfo shown = command;
  std::string name = "planc " + command.name;
  std::string summary = command.summary;
  if (action != nullptr) {
    shown.actions = {*action};
    absl::StrAppend(&name, " ", action->name);
    summary = action->summary;
  }
  std::string text = absl::StrCat(name, ": ", summary, "\n\n", UsageText(shown), "\n",
                                  Wrap("  " + command.description, 0), "\n");
  if (!command.flags.empty()) {
    absl::StrAppend(&text, "\nflags\n", FlagsText(command.flags));
  }
  for (const ActionInfo& one : shown.actions) {
    absl::StrAppend(&text, "\n", Call(one.name, one.arguments), ": ", one.summary, "\n",
                    FlagsText(one.flags));
  }
  absl::StrAppend(&text, "\nflags of every command\n", FlagsText(CommonFlags()));
  absl::StrAppend(&text, "\nexamples\n");
  for (const ExampleInfo& example : command.examples) {
    if (action != nullptr && !absl::StrContains(example.command, name)) continue;
    absl::StrAppend(&text, "  ", example.command, "\n      ", example.sentence, "\n");
  }
  return absl::StrCat(text, "\n", ExitCodesText());
}

std::string OverviewManPage(const std::string& version) {
  std::string text = ManHead("planc", kTagline, version);
  absl::StrAppend(&text,
                  ".SH SYNOPSIS\n.B planc\n.I COMMAND\n[\\fIARGUMENT\\fR...]\n.SH COMMANDS\n");
  std::string see;
  for (const CommandInfo& command : AllCommands()) {
    absl::StrAppend(&text, ".TP\n.B planc ", Roff(Call(command.name, command.arguments)), "\n",
                    Roff(command.summary), ".\n");
    absl::StrAppend(&see, see.empty() ? "" : " ,\n", ".BR planc\\-", command.name, " (1)");
  }
  return absl::StrCat(text, ".SH OPTIONS\nOf every command:\n", ManFlags(CommonFlags()),
                      ManExitCodes(), ".SH SEE ALSO\n", see, "\n");
}

std::string ManPage(const CommandInfo& command, const std::string& version) {
  std::string text = ManHead("planc-" + command.name, command.summary, version);
  absl::StrAppend(&text, ".SH SYNOPSIS\n.nf\n");
  std::string usage = UsageText(command);
  usage.erase(0, 7);  // "usage: ", and what keeps other lines below it
  usage = absl::StrReplaceAll(usage, {{"\n       planc", "\nplanc"}});
  absl::StrAppend(&text, Roff(usage), ".fi\n.SH DESCRIPTION\n", Roff(command.description), "\n");
  for (const ActionInfo& action : command.actions) {
    absl::StrAppend(
        &text, ".SH ", Roff(absl::StrCat("ACTION ", Call(action.name, ""))), "\n.B ",
        Roff(absl::StrCat("planc ", command.name, " ", Call(action.name, action.arguments))),
        "\n.PP\n", Roff(action.summary), "\n", ManFlags(action.flags));
  }
  absl::StrAppend(&text, ".SH OPTIONS\n", ManFlags(command.flags), ManFlags(CommonFlags()));
  absl::StrAppend(&text, ".SH EXAMPLES\n");
  for (const ExampleInfo& example : command.examples) {
    absl::StrAppend(&text, ".TP\n.B ", Roff(example.command), "\n", Roff(example.sentence), "\n");
  }
  return absl::StrCat(text, ManExitCodes(), ".SH SEE ALSO\n.BR planc (1)\n");
}

}  // namespace planc
