#ifndef PLANC_RUNTIME_TRAIN_H_
#define PLANC_RUNTIME_TRAIN_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <ostream>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "kernels/instruction_set.h"
#include "runtime/launch/launch.h"
#include "runtime/run_start.h"
#include "runtime/step/watchdog.h"
#include "schemas/plan.h"

namespace planc {

// How to run a plan; nothing here changes what is computed.
struct RunOptions {
  std::string base_directory;         // relative paths of the job start here
  std::optional<int64_t> stop_after;  // end after this many optimizer steps, counted from step 0
  bool profile = false;               // time every instruction of the last step
  // The largest that kernels may use, which this machine has; the job runs on what
  // all ranks have.
  host::InstructionSet instruction_set = host::InstructionSet::kAvx2;
  std::optional<double> peak_flops;  // of one rank's device, for the utilisation in the metrics
  // A checkpoint to resume from, whatever checkpoint.resume says; relative to base_directory.
  std::optional<std::string> resume_from;
  // What run this is: `run`, when every rank was told before it was started; else `begin_run`,
  // which is asked on rank 0 once all ranks have met.
  std::optional<RunStart> run;
  std::function<absl::StatusOr<RunStart>()> begin_run;
  // Whether the ranks of this rank's machine fit into its memory, asked once all ranks have met and
  // before one allocates; null where that is known. Its error ends every rank.
  std::function<absl::Status()> check_memory;
  StallRule stall;                                       // of the programs
  absl::Duration agreement_timeout = absl::Minutes(10);  // of the ranks, e.g. on a checkpoint
  absl::Duration connect_timeout = absl::Minutes(2);     // until every rank is there
  std::ostream* out = nullptr;                  // where rank 0 shows progress; null: nowhere
  std::map<std::string, std::string> versions;  // of program and libraries, for checkpoints
};

enum class TrainingEnd {
  kCompleted,  // all steps are done
  kStopped,    // a signal asked to stop: nothing was lost, running again goes on from there
};

// Trains: carries out the plan as the rank that `launch` says, from step 0 or from a checkpoint, to
// the last step or until a signal asks to stop. Every rank of the job calls it. A checkpoint that
// the disk refuses is reported and the run goes on; it is an error when the last one is refused, or
// checkpoint.max_failed_saves in a row. Replicas that differ and a state that is not finite end it.
// REQUIRES: VerifyPlan finds nothing wrong with `plan`.
// Errors: Cancelled when a signal came before the first step; see runtime/step/faults.h. No error
// leaves a rank waiting: its groups are closed, so the other ranks fail too.
absl::StatusOr<TrainingEnd> Train(const Plan& plan, const LaunchConfig& launch,
                                  const RunOptions& options);

}  // namespace planc

#endif  // PLANC_RUNTIME_TRAIN_H_
