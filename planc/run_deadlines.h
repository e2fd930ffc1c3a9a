#ifndef PLANC_PLANC_RUN_DEADLINES_H_
#define PLANC_PLANC_RUN_DEADLINES_H_

#include "absl/time/time.h"
#include "schemas/plan.h"

namespace planc {

// How long a run waits before it takes a rank for stalled.
//
//   stall      run.stall_timeout, exactly, when the job sets it. Else an estimate, the larger of
//              60 s and 20 times the predicted step; while it runs the watchdog allows five times
//              that until the first step has ended, and 20 times the slowest step after that, since
//              a prediction from the device catalogue may be far off (StallRule).
//   agreement  stall plus 20 times the predicted time to write a checkpoint: the ranks agree on
//              checkpoints, and one may be done long before another.
//   connect    the same as stall, but 20 s at least, and 2 min for an estimate: until every rank is
//              there.
struct RunDeadlines {
  absl::Duration stall;
  bool estimated = false;
  absl::Duration agreement;
  absl::Duration connect;
};

RunDeadlines DeadlinesOf(const Plan& plan);

}  // namespace planc

#endif  // PLANC_PLANC_RUN_DEADLINES_H_
