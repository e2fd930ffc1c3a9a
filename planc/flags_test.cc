#include "planc/flags.h"

#include <gtest/gtest.h>

#include <string>

namespace planc {
namespace {

TEST(ParseFlags, SplitsFlagsFromPositionalArguments) {
  const absl::StatusOr<Flags> flags = ParseFlags(
      {"a.yaml", "--set", "x=1", "--set=y=2", "-q", "-", "--", "--set"}, {"--set"}, {"-q"});
  ASSERT_TRUE(flags.ok()) << flags.status();
  EXPECT_EQ(flags->positional, (std::vector<std::string>{"a.yaml", "-", "--set"}));
  EXPECT_EQ(flags->All("--set"), (std::vector<std::string>{"x=1", "y=2"}));
  EXPECT_TRUE(flags->Has("-q"));
  EXPECT_EQ(flags->Get("--set", ""), "y=2");
  EXPECT_EQ(flags->Get("--rank", "none"), "none");
}

TEST(ParseFlags, RefusesWhatItDoesNotKnow) {
  const absl::Status unknown = ParseFlags({"--fromat=json"}, {"--format"}, {}).status();
  EXPECT_EQ(unknown.message(), "there is no flag `--fromat`; did you mean `--format`?");
  EXPECT_FALSE(ParseFlags({"--format"}, {"--format"}, {}).ok());
  EXPECT_FALSE(ParseFlags({"-q=1"}, {}, {"-q"}).ok());
}

TEST(Flags, ListSplitsAtCommas) {
  const absl::StatusOr<Flags> flags = ParseFlags({"--show=a,b", "--show=c"}, {"--show"}, {});
  ASSERT_TRUE(flags.ok());
  EXPECT_EQ(flags->List("--show", {}), (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(flags->List("--other", {"z"}), (std::vector<std::string>{"z"}));
}

TEST(CheckChoices, NamesTheSupportedOnes) {
  EXPECT_TRUE(CheckChoices("--show", {"mesh"}, {"mesh", "memory"}).ok());
  EXPECT_EQ(CheckChoices("--show", {"memry"}, {"mesh", "memory"}).message(),
            "--show `memry` is not supported; did you mean `memory`? (supported: mesh, memory)");
}

}  // namespace
}  // namespace planc
