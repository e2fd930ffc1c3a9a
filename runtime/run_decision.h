#ifndef PLANC_RUNTIME_RUN_DECISION_H_
#define PLANC_RUNTIME_RUN_DECISION_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/checkpoint/run_record.h"
#include "runtime/owned_run.h"
#include "runtime/run_start.h"
#include "schemas/plan.h"

namespace planc {

// What run a start is of, and where it goes on.
struct RunDecision {
  RunStart start;
  RunRecord record;
};

// Decides without writing anything. `before`: run.json, if there is one. `used`: a run has been in
// the directory, perhaps one of an older planc without run.json.
// Errors: FailedPrecondition with the ways on.
absl::StatusOr<RunDecision> DecideRun(const Plan& plan, const RunRequest& request,
                                      const RunFolders& folders,
                                      const std::optional<RunRecord>& before, bool used);

// Moves the files of the run in `folders.run` and its checkpoints, and those of other runs in
// `folders.checkpoints`, into folders run-ID beside them, run.json last. Nothing is removed and
// what others put there stays. Returns the folder in `folders.run`. Errors: Internal.
absl::StatusOr<std::string> SetRunAside(const RunFolders& folders,
                                        const std::optional<RunRecord>& before);

}  // namespace planc

#endif  // PLANC_RUNTIME_RUN_DECISION_H_
