#ifndef PLANC_RUNTIME_TRAIN_H_
#define PLANC_RUNTIME_TRAIN_H_

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "runtime/launch/launch.h"
#include "schemas/plan.h"

namespace planc {

// How to run a plan; nothing here changes what is computed.
struct RunOptions {
  std::string base_directory;         // relative paths of the job start here
  std::optional<int64_t> stop_after;  // end after this many optimizer steps, counted from step 0
  bool profile = false;               // time every instruction of the last step
  std::optional<double> peak_flops;   // of one rank's device, for the utilisation in the metrics
  absl::Duration stall_deadline = absl::Minutes(10);  // of the watchdog
  std::ostream* out = nullptr;                        // where rank 0 shows progress; null: nowhere
};

// Trains: carries out the plan as the rank that `launch` says, from step 0 or from a checkpoint, to
// the last step or until a signal asks to stop. Every rank of the job calls it.
// REQUIRES: VerifyPlan finds nothing wrong with `plan`.
// Errors: see runtime/step/faults.h. No error leaves a rank waiting: its groups are closed, so the
// other ranks fail too.
absl::Status Train(const Plan& plan, const LaunchConfig& launch, const RunOptions& options);

}  // namespace planc

#endif  // PLANC_RUNTIME_TRAIN_H_
