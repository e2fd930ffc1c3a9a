#ifndef PLANC_RUNTIME_CHECKPOINT_PROBE_H_
#define PLANC_RUNTIME_CHECKPOINT_PROBE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "runtime/checkpoint/agreement.h"
#include "runtime/checkpoint/file_system.h"
#include "schemas/plan.h"

namespace planc {

// Where a run will save, and what.
struct SavesToCome {
  std::string directory;   // checkpoint.directory
  std::string run_id;      // whose checkpoints are pruned; may be empty
  int64_t first_step = 0;  // steps done when it begins
  int64_t end_step = 0;    // steps done when it ends
};

// Tries out, before the first step, what saves will do: each rank that writes makes a file in a
// folder of rank 0's under `directory`, waits until it is on the disk, renames it and reads it
// back; rank 0 reads all of them, and removes the folder. Then compares the free space with the
// checkpoints that will lie there beside those that are there, checkpoint.keep of them and the one
// being written, and the size of the largest file with what a process may write (RLIMIT_FSIZE).
// Called by every rank; does nothing when no save is to come.
//
// Errors, on all ranks, of the fault kEnvironment and naming the path: Internal with the system's
// reason; DataLoss when a file does not read as it was written, or rank 0 does not see another
// rank's; FailedPrecondition, with bytes needed and free, when there is too little space.
absl::Status ProbeDirectory(const Plan& plan, int64_t rank, const SavesToCome& saves,
                            Agreement& agreement, const FileSystem& files = HostFileSystem());

// Checkpoints that will be written at most, and bytes of them that do not lie in `directory` yet
// when the most of them lie there at once.
int64_t CountSaves(const Plan& plan, const SavesToCome& saves);
int64_t MissingCheckpointBytes(const Plan& plan, const SavesToCome& saves);

}  // namespace planc

#endif  // PLANC_RUNTIME_CHECKPOINT_PROBE_H_
