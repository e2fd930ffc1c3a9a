#include "runtime/launch/terminal.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace planc {

bool TerminalRewrites(const Environment& environment) {
  const std::string terminal = environment("TERM").value_or("");
  return !terminal.empty() && terminal != "dumb";
}

int TerminalColumns() {
  winsize size = {};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  const int terminal = open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC);
  if (terminal < 0) return 0;
  const bool known = ioctl(terminal, TIOCGWINSZ, &size) == 0;
  close(terminal);
  return known ? size.ws_col : 0;
}

bool ColourSuits(const Environment& environment) {
  return TerminalRewrites(environment) && environment("NO_COLOR").value_or("").empty();
}

}  // namespace planc
