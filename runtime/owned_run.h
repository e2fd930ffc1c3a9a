#ifndef PLANC_RUNTIME_OWNED_RUN_H_
#define PLANC_RUNTIME_OWNED_RUN_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/checkpoint/run_record.h"
#include "runtime/data/data_identity.h"
#include "runtime/launch/launch.h"
#include "runtime/launch/run_lock.h"
#include "runtime/run_start.h"
#include "schemas/plan.h"

namespace planc {

// What is asked of a run when it is started.
struct RunRequest {
  std::string plan_hash;
  std::string version;                // of this program
  std::string base_directory;         // what relative paths of the job start from
  std::optional<DataIdentity> data;   // of the job's files
  std::optional<std::string> resume;  // takes the place of checkpoint.resume
  std::optional<int64_t> stop_after;  // as RunOptions::stop_after
  bool fresh = false;                 // begin a new run where another one has been
  std::string launch;                 // the launcher's name for this start; RunRecord::launch
  int restart = 0;                    // how often that launcher has restarted it
  RunLockOptions lock;
};

// Where a run keeps its files.
struct RunFolders {
  std::string run;          // run.directory
  std::string checkpoints;  // checkpoint.directory
};
RunFolders FoldersOf(const Plan& plan, const std::string& base_directory);

// A run that this process owns: nobody else writes into its directories meanwhile. One process of a
// job has it: the one that starts the ranks, else rank 0.
class OwnedRun {
 public:
  // Takes the directories, and decides what run this is and where it goes on (docs/run_directory.md
  // has the rules). Until it returns OK, nothing is replaced or removed; afterwards run.json says
  // that the run is running, unless all its steps are done already.
  // Errors: FailedPrecondition, with the ways on, when another process owns a directory, when what
  // is there belongs to another run, or when a directory cannot be written; Internal when the
  // system fails otherwise; Cancelled.
  static absl::StatusOr<std::unique_ptr<OwnedRun>> Begin(const Plan& plan,
                                                         const RunRequest& request);

  const RunStart& start() const { return start_; }
  const RunRecord& record() const { return record_; }
  const RunFolders& folders() const { return folders_; }

  // The exit code of a run that `fault` has ended: the fault's, or one that does not ask for
  // another try where run.json shows that the same has happened before (CodeOfFault). `notice`
  // says why, or is empty. End writes the fault.
  int64_t CodeAfter(const RunFault& fault, std::string* notice);
  // Writes into run.json how the run has ended.
  absl::Status End(int64_t exit_code);
  // Whether it has a checkpoint to go on from, later than where it was started. Errors: as
  // FindCheckpoints.
  absl::StatusOr<bool> HasWritten() const;
  // The newest of its checkpoints; empty when there is none.
  std::string NewestCheckpoint() const;

 private:
  std::optional<ParentCheckpoint> Tip() const;

  OwnedRun(RunFolders folders, std::vector<std::unique_ptr<RunLock>> locks)
      : folders_(std::move(folders)), locks_(std::move(locks)) {}

  const RunFolders folders_;
  std::vector<std::unique_ptr<RunLock>> locks_;
  RunStart start_;
  RunRecord record_;
};

// Whether a start goes on from what the run in its directory wrote although a checkpoint or `never`
// is asked for: it is a launcher's own restart, or the checkpoint is the one that the run began
// with, or the one that the job file sent it back to before. False where there is no run.
bool GoesOnByItself(const Plan& plan, const RunRequest& request);

// The step that the last row of `directory`/metrics.jsonl is of; 0 when there is none.
int64_t LastMetricsStep(const std::string& directory);

}  // namespace planc

#endif  // PLANC_RUNTIME_OWNED_RUN_H_
