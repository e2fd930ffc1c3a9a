#ifndef PLANC_RUNTIME_CHECKPOINT_RUN_CHECKPOINTS_H_
#define PLANC_RUNTIME_CHECKPOINT_RUN_CHECKPOINTS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/checkpoint/checkpoint_directory.h"
#include "runtime/checkpoint/file_system.h"

namespace planc {

// Where a run went back: branch i + 1 of a run goes on from its i-th branch point.
struct BranchPoint {
  int64_t branch = 0;  // that the checkpoint gone back to is of
  int64_t step = 0;    // of that checkpoint
};
// Whether a checkpoint of `branch` and `step` is one that the last branch goes on from, or of it.
bool IsOnChain(const std::vector<BranchPoint>& points, int64_t branch, int64_t step);

// Whose checkpoints `auto` takes.
struct CheckpointSelection {
  std::string run_id;                // of the run that goes on; empty: whoever's
  bool adopts_unidentified = false;  // and those without an id
  std::vector<BranchPoint> points;   // and of these only those on its chain
};

// The checkpoints under `directory` that the selection covers, oldest first. One whose manifest
// cannot be read is covered, because it may be: whoever loads it finds out. So is one whose
// manifest is of another step than the folder's name says, which CheckStep refuses. Errors: as
// FindCheckpoints.
absl::StatusOr<std::vector<CheckpointEntry>> SelectCheckpoints(
    const std::string& directory, const CheckpointSelection& selection);
// OK when the manifest's step is that of the folder's name. Errors: DataLoss.
absl::Status CheckStep(const CheckpointEntry& entry, int64_t manifest_step);

// What `auto` finds for a run.
struct AutoChoice {
  std::vector<CheckpointEntry> candidates;  // oldest first
  bool adopts_unidentified = false;         // the candidates have no run id
  std::vector<std::string> others;          // ids of other runs in the directory, each once
};
// `own`: the run whose directory it is, with an empty run_id for a run that begins. That one takes
// checkpoints without an id, which are of an older planc or imported. Errors: as FindCheckpoints.
absl::StatusOr<AutoChoice> ChooseForAuto(const std::string& directory,
                                         const CheckpointSelection& own);

// The folder for what a run left behind when it went back for the `count`-th time; it exists once
// the run has.
std::string SupersededFolder(const std::string& directory, const std::string& run_id, size_t count);
// Makes that folder for the last branch point and renames the run's checkpoints that are not on its
// chain into it. Nothing is removed, and nothing there is replaced. Returns how many there were.
// Errors: as FindCheckpoints.
absl::StatusOr<int64_t> SetSupersededAside(const std::string& directory,
                                           const CheckpointSelection& own,
                                           const FileSystem& files = HostFileSystem());

// Renames a checkpoint or what is left of one into `directory`/run-ID, where ID is that of its run,
// or "unknown". Nothing that lies there is replaced. Errors: Internal.
absl::Status SetCheckpointAside(const std::string& directory, const std::string& path,
                                const FileSystem& files = HostFileSystem());
// A path beside which nothing lies: `path`, or `path`.1, `path`.2 ...
std::string FreePath(const std::string& path);

}  // namespace planc

#endif  // PLANC_RUNTIME_CHECKPOINT_RUN_CHECKPOINTS_H_
