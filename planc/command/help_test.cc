// planc help and its manual pages, and what the table of commands must hold.
#include <gtest/gtest.h>

#include <cctype>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "planc/command_table.h"
#include "planc/commands.h"
#include "planc/flags.h"
#include "planc/help_text.h"
#include "planc/show/show.h"
#include "planc/text.h"

namespace planc {
namespace {

std::string Help(const std::vector<std::string>& args) {
  std::ostringstream out;
  std::ostringstream err;
  EXPECT_EQ(RunHelp(args, out, err), kExitOk) << err.str();
  return out.str();
}

TEST(CommandTable, EverySentenceIsOne) {
  for (const CommandInfo& command : AllCommands()) {
    EXPECT_TRUE(absl::EndsWith(command.description, ".")) << command.name;
    EXPECT_FALSE(command.examples.empty()) << command.name;
    for (const FlagInfo& flag : FlagsOf(command, nullptr)) {
      EXPECT_TRUE(absl::StartsWith(flag.name, "--")) << flag.name;
      EXPECT_TRUE(absl::EndsWith(flag.sentence, ".")) << command.name << " " << flag.name;
      EXPECT_TRUE(isupper(flag.sentence[0])) << command.name << " " << flag.name;
      EXPECT_EQ(flag.value.empty(), flag.kind == FlagKind::kSwitch) << flag.name;
    }
  }
}

TEST(CommandTable, DefaultsAreValuesThatTheFlagTakes) {
  for (const CommandInfo& command : AllCommands()) {
    for (const FlagInfo& flag : FlagsOf(command, nullptr)) {
      if (flag.choices.empty() || flag.default_value.empty()) continue;  // or unset
      const std::vector<std::string> values = absl::StrSplit(flag.default_value, ',');
      EXPECT_TRUE(CheckChoices(flag.name, values, flag.choices).ok()) << flag.name;
    }
  }
}

TEST(CommandTable, ShowNamesTheSections) {
  for (const FlagInfo& flag : FindCommand("plan")->flags) {
    if (flag.name != "--show") continue;
    EXPECT_EQ(flag.choices, SectionNames());
  }
}

// Whatever stands after `planc COMMAND` up to the end of a simple command parses.
TEST(CommandTable, ExamplesParse) {
  for (const CommandInfo& command : AllCommands()) {
    for (const ExampleInfo& example : command.examples) {
      std::string line = example.command;
      const size_t begin = line.find("planc " + command.name);
      ASSERT_NE(begin, std::string::npos) << line;
      line = line.substr(begin + 6 + command.name.size());
      if (!line.empty() && line.back() == ')') line.pop_back();
      const std::vector<std::string> args = absl::StrSplit(line, ' ', absl::SkipEmpty());
      if (absl::StrContains(line, "words")) continue;  // unfinished words
      EXPECT_TRUE(ParseFlags(command, args).ok())
          << example.command << ": " << ParseFlags(command, args).status();
    }
  }
}

TEST(Help, FitsTheColumnsAndNamesEverything) {
  const std::string overview = Help({});
  for (const CommandInfo& command : AllCommands()) {
    EXPECT_TRUE(absl::StrContains(overview, "  planc " + command.name + " ") ||
                absl::StrContains(overview, "  planc " + command.name + "\n"))
        << command.name;
    const std::string text = Help({command.name});
    for (const FlagInfo& flag : FlagsOf(command, nullptr)) {
      EXPECT_TRUE(absl::StrContains(text, flag.name)) << command.name << " " << flag.name;
    }
    for (const auto line : absl::StrSplit(overview + text, '\n')) {
      EXPECT_LE(line.size(), size_t{kColumns}) << line;
    }
  }
}

TEST(Help, ExplainsAFlag) {
  const std::string text = Help({"run"});
  EXPECT_TRUE(absl::StrContains(text,
                                "  --steps=N\n"
                                "      Stops after step N, with a checkpoint, before run.steps.\n"))
      << text;
  EXPECT_TRUE(absl::StrContains(Help({"sample"}),
                                "  --tokens=N\n"
                                "      How many tokens to write.\n"
                                "      Default: 200\n"));
}

TEST(Help, OfAnActionLeavesOutTheOthers) {
  const std::string text = Help({"checkpoint", "export"});
  EXPECT_TRUE(absl::StrContains(text, "--max-shard-size")) << text;
  EXPECT_FALSE(absl::StrContains(text, "--job")) << text;
}

TEST(Help, SuggestsTheNearestCommand) {
  std::ostringstream out;
  std::ostringstream err;
  EXPECT_EQ(RunHelp({"chekpoint"}, out, err), kExitJobError);
  EXPECT_TRUE(absl::StrContains(err.str(), "did you mean `checkpoint`?")) << err.str();
  EXPECT_EQ(RunHelp({"plan", "export"}, out, err), kExitJobError);
}

TEST(ManPage, EscapesWhatRoffWouldRead) {
  const std::string page = ManPage(*FindCommand("plan"), "1.2.3");
  EXPECT_TRUE(absl::StartsWith(page, ".TH PLANC\\-PLAN 1 \"\" \"planc 1.2.3\"")) << page;
  EXPECT_TRUE(absl::StrContains(page, "\n.B \\-o FILE, \\-\\-output=FILE\n")) << page;
  EXPECT_TRUE(absl::StrContains(page, "Default: summary,mesh,memory,comm.\n")) << page;
  EXPECT_TRUE(absl::StrContains(OverviewManPage("1.2.3"), ".BR planc\\-checkpoint (1)"));
}

}  // namespace
}  // namespace planc
