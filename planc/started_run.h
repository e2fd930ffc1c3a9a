#ifndef PLANC_PLANC_STARTED_RUN_H_
#define PLANC_PLANC_STARTED_RUN_H_

#include <string>

#include "planc/load_plan.h"
#include "runtime/launch/launch.h"
#include "runtime/owned_run.h"
#include "runtime/train.h"

namespace planc {

// What `planc run` asks for, before RunRequest::lock's callbacks are set. `fresh`: --fresh.
RunRequest RequestOf(const LoadedPlan& loaded, const RunOptions& options,
                     const LaunchConfig& launch, bool fresh);

// What people are told when a run starts, and when it has ended with `code`: which run it is and
// where its files are.
std::string StartText(const OwnedRun& run);
std::string EndText(const OwnedRun& run, int code);

}  // namespace planc

#endif  // PLANC_PLANC_STARTED_RUN_H_
