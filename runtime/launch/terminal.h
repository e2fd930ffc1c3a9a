#ifndef PLANC_RUNTIME_LAUNCH_TERMINAL_H_
#define PLANC_RUNTIME_LAUNCH_TERMINAL_H_

#include "runtime/launch/launch.h"

namespace planc {

// Whether the terminal of this environment can rewrite a line: TERM is set and not "dumb".
bool TerminalRewrites(const Environment& environment);

// Whether colours suit it: it can rewrite a line, and NO_COLOR (https://no-color.org) is not set to
// anything.
bool ColourSuits(const Environment& environment);

// Columns of the terminal that this process writes to, now: of standard output, or, behind a pipe
// of the launcher, of the controlling terminal. 0 when there is none.
int TerminalColumns();

}  // namespace planc

#endif  // PLANC_RUNTIME_LAUNCH_TERMINAL_H_
