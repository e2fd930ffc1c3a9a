#ifndef PLANC_RUNTIME_CHECKPOINT_CHECKPOINTER_H_
#define PLANC_RUNTIME_CHECKPOINT_CHECKPOINTER_H_

#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/checkpoint/agreement.h"
#include "runtime/checkpoint/file_system.h"
#include "runtime/checkpoint/save.h"
#include "runtime/checkpoint/watched_file_system.h"
#include "runtime/step/shard_view.h"
#include "schemas/plan.h"

namespace planc {

// How a save ended.
struct SaveResult {
  int64_t step = 0;
  absl::Status status;       // the same on all ranks
  double write_seconds = 0;  // from the first byte to the commit
  int64_t bytes = 0;         // of all files; known on rank 0
  std::string notice;        // SavedCheckpoint::notice
};

// Saves checkpoints of one rank while it trains. With checkpoint.async the step loop is held up
// only while the training state is copied to the planned snapshot; a thread writes from there,
// one save at a time. Otherwise a save is written from the training state itself. Used by one
// thread; all ranks call the same functions in the same order.
class Checkpointer {
 public:
  // `shards`: all of this rank. `threads`: how many copy. `agreement` is used by nobody else.
  // `plan` and `agreement` must outlive this object.
  Checkpointer(const Plan& plan, int64_t rank, int threads, std::vector<ShardView> shards,
               std::string directory, Agreement& agreement, SaveOptions options);
  // A save in progress fails, soon.
  ~Checkpointer();
  Checkpointer(const Checkpointer&) = delete;
  Checkpointer& operator=(const Checkpointer&) = delete;

  // Saves the state after `step` optimizer steps, called between two steps; waits for the previous
  // save. Returns the seconds that the caller was held up. A save that the disk refuses is told by
  // TakeEnded, and the run may go on. Errors: a rank was lost; a state that is not finite; as many
  // saves in a row as checkpoint.max_failed_saves says were refused. `last`: no step follows, so
  // that refused saves are no error here; Finish tells.
  absl::StatusOr<double> Save(int64_t step, bool last = false);

  // The saves that ended since the last call, in order.
  std::vector<SaveResult> TakeEnded();

  // Waits until nothing is being written. Errors: those of the last save; OK when there was none.
  absl::Status Finish();

 private:
  void Write(int64_t step);
  // Waits for the save in progress, which holds this rank up.
  void Await();
  // Why the run must not go on after the save that ended last; OK when it may. `last`: as of Save.
  absl::Status MustEnd(bool last) const;

  const Plan& plan_;
  const int64_t rank_;
  const int threads_;
  const std::vector<ShardView> shards_;
  std::vector<ShardView> sources_;  // what is written: the shards, or their snapshots
  const std::string directory_;
  Agreement& agreement_;
  const HostFileSystem host_files_;
  const WatchedFileSystem watched_;
  CancellableFileSystem files_;
  SaveOptions options_;

  std::thread writer_;  // of the save in progress
  // Of the saves that ended; read when nothing is being written.
  absl::Status last_;            // of the last one
  int64_t failed_in_a_row_ = 0;  // of the last ones
  std::mutex mutex_;
  std::vector<SaveResult> ended_;  // guarded by mutex_
};

}  // namespace planc

#endif  // PLANC_RUNTIME_CHECKPOINT_CHECKPOINTER_H_
