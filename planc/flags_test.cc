#include "planc/flags.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>

namespace planc {
namespace {

FlagInfo Flag(const std::string& name, FlagKind kind, const std::string& default_value = "") {
  FlagInfo flag;
  flag.name = name;
  flag.kind = kind;
  flag.default_value = default_value;
  return flag;
}

CommandInfo Command() {
  CommandInfo command;
  command.name = "test";
  command.flags = {Flag("--set", FlagKind::kSetting), Flag("--quiet", FlagKind::kSwitch),
                   Flag("--rank", FlagKind::kNumber, "none"), Flag("--format", FlagKind::kChoice),
                   Flag("--show", FlagKind::kChoices, "b,c")};
  command.flags[1].short_name = "-q";
  command.flags[3].choices = {"text", "json"};
  command.flags[4].choices = {"a", "b", "c"};
  return command;
}

std::string Problem(const CommandInfo& command, const std::vector<std::string>& args) {
  return std::string(ParseFlags(command, args).status().message());
}

TEST(ParseFlags, SplitsFlagsFromPositionalArguments) {
  const absl::StatusOr<Flags> flags =
      ParseFlags(Command(), {"a.yaml", "--set", "x=1", "--set=y=2", "-q", "-", "--", "--set"});
  ASSERT_TRUE(flags.ok()) << flags.status();
  EXPECT_EQ(flags->positional, (std::vector<std::string>{"a.yaml", "-", "--set"}));
  EXPECT_EQ(flags->All("--set"), (std::vector<std::string>{"x=1", "y=2"}));
  EXPECT_TRUE(flags->Has("--quiet"));
  EXPECT_EQ(flags->Get("--set"), "y=2");
  EXPECT_FALSE(flags->Has("--rank"));
  EXPECT_EQ(flags->Get("--rank"), "none");
}

TEST(ParseFlags, RefusesWhatItDoesNotKnow) {
  EXPECT_EQ(Problem(Command(), {"--fromat=json"}),
            "there is no flag `--fromat`; did you mean `--format`?");
  EXPECT_EQ(Problem(Command(), {"--format"}), "--format needs a value");
  EXPECT_EQ(Problem(Command(), {"-q=1"}), "-q takes no value");
  EXPECT_EQ(Problem(Command(), {"--format=jsn"}),
            "--format `jsn` is not supported; did you mean `json`? (supported: text, json)");
  EXPECT_EQ(Problem(Command(), {"--show=a,d"}), "--show `d` is not supported (supported: a, b, c)");
}

TEST(ParseFlags, ShortFlagsAreNotSuggested) {
  EXPECT_EQ(Problem(Command(), {"-p"}), "there is no flag `-p`");
  EXPECT_EQ(Problem(*FindCommand("plan"), {"-p"}), "there is no flag `-p`");
}

TEST(ParseFlags, HelpEndsTheReading) {
  for (const char* help : {"-h", "--help"}) {
    const absl::StatusOr<Flags> flags = ParseFlags("checkpoint", {"export", help, "--nonsense"});
    ASSERT_TRUE(flags.ok()) << flags.status();
    EXPECT_TRUE(flags->Has("--help"));
    EXPECT_EQ(flags->positional, std::vector<std::string>{"export"});
  }
  // What looks like help is a value here, a file there.
  EXPECT_EQ(ParseFlags("sample", {"--prompt", "-h"})->Get("--prompt"), "-h");
  EXPECT_FALSE(ParseFlags("check", {"--", "-h"})->Has("--help"));
}

TEST(ParseFlags, ActionsTakeTheirOwnFlags) {
  const CommandInfo& command = *FindCommand("checkpoint");
  EXPECT_EQ(Problem(command, {"export", "a", "b", "--dtype=bf16"}), "");
  EXPECT_EQ(Problem(command, {"import", "a", "b", "--dtype=bf16"}), "import takes no --dtype");
  EXPECT_EQ(Problem(command, {}), "what shall it do? One of ls, verify, export, import");
  EXPECT_EQ(Problem(command, {"verfy", "a"}),
            "action `verfy` is not supported; did you mean `verify`? (supported: ls, verify, "
            "export, import)");
}

TEST(Flags, ListSplitsAtCommas) {
  const absl::StatusOr<Flags> flags = ParseFlags(Command(), {"--show=a,b", "--show=c"});
  ASSERT_TRUE(flags.ok());
  EXPECT_EQ(flags->List("--show"), (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(ParseFlags(Command(), {})->List("--show"), (std::vector<std::string>{"b", "c"}));
}

TEST(Flags, ReadingAFlagThatTheCommandDoesNotHaveIsABug) {
  const absl::StatusOr<Flags> flags = ParseFlags(Command(), {});
  EXPECT_DEATH(flags->Get("--steps"), "--steps is not in planc/commands.def");
}

TEST(CheckChoices, NamesTheSupportedOnes) {
  EXPECT_TRUE(CheckChoices("--show", {"mesh"}, {"mesh", "memory"}).ok());
  EXPECT_EQ(CheckChoices("--show", {"memry"}, {"mesh", "memory"}).message(),
            "--show `memry` is not supported; did you mean `memory`? (supported: mesh, memory)");
}

TEST(UsageError, SaysWhatIsWrongAndHowItGoes) {
  std::ostringstream err;
  EXPECT_EQ(UsageError("diff", "two jobs or plans are needed", err), 2);
  EXPECT_EQ(err.str(),
            "planc diff: two jobs or plans are needed\n"
            "usage: planc diff JOB|PLAN JOB|PLAN [--format=text|json] [--set KEY=VALUE]...\n"
            "`planc help diff` explains it\n");
}

}  // namespace
}  // namespace planc
