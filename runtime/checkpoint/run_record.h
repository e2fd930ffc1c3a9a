#ifndef PLANC_RUNTIME_CHECKPOINT_RUN_RECORD_H_
#define PLANC_RUNTIME_CHECKPOINT_RUN_RECORD_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/checkpoint/manifest.h"
#include "runtime/checkpoint/run_checkpoints.h"
#include "runtime/data/data_identity.h"
#include "runtime/launch/run_fault.h"
#include "schemas/job.pb.h"

namespace planc {

inline constexpr char kRunRecordName[] = "run.json";

// X(enumerator, text).
#define PLANC_RUN_STATES(X)                                        \
  X(kRunning, "running")     /* or ended without a word: killed */ \
  X(kStopped, "stopped")     /* in order, before its last step */  \
  X(kCompleted, "completed") /* all steps of the job are done */   \
  X(kFailed, "failed")       /* exit_code says how */

enum class RunState : uint8_t {
#define PLANC_RUN_STATE_ENUM(name, text) name,
  PLANC_RUN_STATES(PLANC_RUN_STATE_ENUM)
#undef PLANC_RUN_STATE_ENUM
};
const char* RunStateName(RunState state);

// A way back: the run left what it had done after one of its checkpoints, and took another way.
struct WayBack {
  BranchPoint point;
  std::string path;  // of the checkpoint, absolute
};

// What is known of a run, <run.directory>/run.json (docs/run_directory.md).
struct RunRecord {
  std::string id;                    // 16 hexadecimal digits, drawn when the run begins
  proto::Job job;                    // resolved, as it was last started
  std::string plan_hash;             // as it was last started
  std::string planc;                 // version of the program that last started it
  std::string began;                 // when the run began, UTC
  std::string checkpoint_directory;  // absolute
  std::string initial;  // the checkpoint that it began from, absolute; empty: initial weights
  // The weights that it began with, checkpoint.initial, absolute; empty: drawn from the seed, or
  // those of `initial`.
  std::string initial_weights;
  std::vector<WayBack> ways_back;  // in order; their count is the branch of what it saves now
  // The newest checkpoint of its chain when it was last started or ended.
  std::optional<ParentCheckpoint> tip;
  std::optional<DataIdentity> data;  // of the files it was last started with
  std::string launch;   // the launcher's name for what last started it, e.g. "slurm 1234.0"
  int64_t restart = 0;  // how often that launcher had restarted it
  int64_t starts = 0;   // how often it was started
  // Checkpoints without a run id in its directory are its own: they are of an older planc.
  bool adopts_unidentified = false;
  RunState state = RunState::kRunning;
  int64_t last_step = 0;             // steps done when it last ended
  std::optional<int64_t> exit_code;  // of its last end; nothing while it runs
  std::optional<RunFault> fault;     // what ended it, when another try was worth it
};

// Which checkpoints are the run's own.
CheckpointSelection SelectionOf(const RunRecord& record);

// A new id.
std::string NewRunId();
// "2026-12-01T04:13:04Z".
std::string UtcNow();

// Errors: NotFound when there is no record; DataLoss naming the file when it cannot be read.
absl::StatusOr<RunRecord> ReadRunRecord(const std::string& directory);
// Replaces it at once and waits until it is on the disk. Errors: Internal.
absl::Status WriteRunRecord(const std::string& directory, const RunRecord& record);

}  // namespace planc

#endif  // PLANC_RUNTIME_CHECKPOINT_RUN_RECORD_H_
