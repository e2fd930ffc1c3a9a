#ifndef PLANC_PLANC_RESTART_POINTS_H_
#define PLANC_PLANC_RESTART_POINTS_H_

#include "runtime/launch/local_launcher.h"
#include "runtime/owned_run.h"

namespace planc {

// Where the ranks of a run go on when they are started again: at its newest checkpoint, whatever it
// began from; as they did at first when it has none.
RestartPoint NewestRestartPoint(const OwnedRun& run);

}  // namespace planc

#endif  // PLANC_PLANC_RESTART_POINTS_H_
