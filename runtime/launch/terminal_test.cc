#include "runtime/launch/terminal.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace planc {
namespace {

Environment Of(const std::map<std::string, std::string>& variables) {
  return [variables](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  };
}

TEST(Terminal, ADumbOneRewritesNothing) {
  EXPECT_TRUE(TerminalRewrites(Of({{"TERM", "xterm-256color"}})));
  EXPECT_TRUE(TerminalRewrites(Of({{"TERM", "xterm"}, {"NO_COLOR", "1"}})));
  EXPECT_FALSE(TerminalRewrites(Of({{"TERM", "dumb"}})));
  EXPECT_FALSE(TerminalRewrites(Of({{"TERM", ""}})));
  EXPECT_FALSE(TerminalRewrites(Of({})));
}

TEST(Terminal, NoColorForbidsColoursUnlessEmpty) {
  EXPECT_TRUE(ColourSuits(Of({{"TERM", "xterm"}})));
  EXPECT_TRUE(ColourSuits(Of({{"TERM", "xterm"}, {"NO_COLOR", ""}})));
  EXPECT_FALSE(ColourSuits(Of({{"TERM", "xterm"}, {"NO_COLOR", "0"}})));
  EXPECT_FALSE(ColourSuits(Of({{"TERM", "dumb"}})));
}

}  // namespace
}  // namespace planc
