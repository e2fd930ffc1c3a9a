#ifndef PLANC_RUNTIME_RUN_START_H_
#define PLANC_RUNTIME_RUN_START_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/checkpoint/agreement.h"
#include "runtime/checkpoint/run_checkpoints.h"
#include "runtime/process_group/control.h"

namespace planc {

// What every rank must know of the run that it is part of.
struct RunStart {
  std::string id;         // RunRecord::id
  std::string plan_hash;  // of the plan that all its ranks carry out
  // ChecksumOf the data that all its ranks read, which run.json lists; empty: not known.
  std::string data;
  std::string resume;                // takes the place of checkpoint.resume
  bool adopts_unidentified = false;  // RunRecord::adopts_unidentified
  std::vector<BranchPoint> points;   // RunRecord::ways_back
  std::string initial;               // RunRecord::initial_weights, where it starts without one
  bool complete = false;             // all steps are done: there is nothing to run
  std::vector<std::string> locks;    // paths of the locks that the run holds
  std::vector<std::string> notices;  // for people, one line each
};

// Which checkpoints are the run's own.
CheckpointSelection SelectionOf(const RunStart& start);

// "nothing to do: 5 steps are asked for, and 8 are done".
std::string NothingToDoText(int64_t asked, int64_t done);

// As one line of text, to hand it to other processes.
std::string RunStartText(const RunStart& start);
// Errors: Internal.
absl::StatusOr<RunStart> ParseRunStart(const std::string& text);

// What `begin` says on rank 0, on all ranks. Errors, on all ranks: those of `begin`, and of a lost
// rank.
absl::StatusOr<RunStart> AgreeOnRun(const std::function<absl::StatusOr<RunStart>()>& begin,
                                    Control* control, Agreement& agreement);

// OK while the run holds its locks. Errors: FailedPrecondition when another one has taken over.
absl::Status CheckStillOwned(const RunStart& start);

}  // namespace planc

#endif  // PLANC_RUNTIME_RUN_START_H_
