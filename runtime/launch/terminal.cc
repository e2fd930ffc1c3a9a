#include "runtime/launch/terminal.h"

namespace planc {

bool TerminalRewrites(const Environment& environment) {
  const std::string terminal = environment("TERM").value_or("");
  return !terminal.empty() && terminal != "dumb";
}

bool ColourSuits(const Environment& environment) {
  return TerminalRewrites(environment) && environment("NO_COLOR").value_or("").empty();
}

}  // namespace planc
