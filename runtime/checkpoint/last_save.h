#ifndef PLANC_RUNTIME_CHECKPOINT_LAST_SAVE_H_
#define PLANC_RUNTIME_CHECKPOINT_LAST_SAVE_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "runtime/checkpoint/agreement.h"
#include "runtime/checkpoint/checkpointer.h"

namespace planc {

// How often a last save is repeated: with pauses that double up to the longest, until so much time
// has passed. What a batch system leaves to a job that it stops is less, and ends it sooner.
struct LastSaveRule {
  absl::Duration first_pause = absl::Seconds(1);
  absl::Duration longest_pause = absl::Minutes(1);
  absl::Duration give_up_after = absl::Minutes(30);
};

// Ends the saves of a run after its last step, `step`. Where the disk refused the last one, it is
// repeated from the state in memory: the steps since the newest checkpoint are not lost while they
// may still be saved. A refusal that cannot pass, such as a directory that may not be written, is
// not repeated. `told` is called with a line for people before each pause, on all ranks;
// `stop_requested` is asked in pauses: a stop that is asked for meanwhile ends the attempts.
// Called by all ranks. Errors: of the last attempt.
absl::Status FinishSaves(int64_t step, const std::string& directory, Agreement& agreement,
                         const LastSaveRule& rule, const std::function<bool()>& stop_requested,
                         const std::function<void(const std::string&)>& told,
                         Checkpointer* checkpointer);

}  // namespace planc

#endif  // PLANC_RUNTIME_CHECKPOINT_LAST_SAVE_H_
