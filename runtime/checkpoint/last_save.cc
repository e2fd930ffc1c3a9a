#include "runtime/checkpoint/last_save.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "schemas/fault.h"

namespace planc {
namespace {

constexpr absl::Duration kLook = absl::Milliseconds(100);  // between looks for a stop

// Whether the disk is to blame, and not the state or another rank.
bool IsRefused(const absl::Status& status) {
  const bool by_disk = absl::IsInternal(status) || absl::IsDataLoss(status);
  return by_disk && FaultOf(status) != std::optional<Fault>(Fault::kTraining);
}

// Whether what refused a save may pass, as a full or a slow disk does, as far as this rank sees.
bool MayPass(const std::string& directory) {
  rlimit limit{};
  const bool limited = getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  return !limited && access(directory.c_str(), W_OK | X_OK) == 0;
}

// Returns early when a stop is asked for.
void Pause(absl::Duration pause, const std::function<bool()>& stop_requested) {
  const absl::Time end = absl::Now() + pause;
  while (absl::Now() < end && !stop_requested()) {
    absl::SleepFor(std::min(kLook, end - absl::Now()));
  }
}

}  // namespace

absl::Status FinishSaves(int64_t step, const std::string& directory, Agreement& agreement,
                         const LastSaveRule& rule, const std::function<bool()>& stop_requested,
                         const std::function<void(const std::string&)>& told,
                         Checkpointer* checkpointer) {
  absl::Status saved = checkpointer->Finish();
  const absl::Time begin = absl::Now();
  const bool stopping = stop_requested();  // this is then the save that the stop asked for
  const auto stopped = [&] { return !stopping && stop_requested(); };
  absl::Duration pause = rule.first_pause;
  while (IsRefused(saved)) {
    const bool again = MayPass(directory) && !stopped() && absl::Now() - begin < rule.give_up_after;
    // One rank that gives up ends it for all.
    const absl::Status all = agreement.AllOk(again ? absl::OkStatus() : saved);
    if (!all.ok()) return saved;
    told(absl::StrCat("the last checkpoint was refused, its state is kept in memory: again in ",
                      absl::FormatDuration(pause)));
    Pause(pause, stopped);
    pause = std::min(2 * pause, rule.longest_pause);
    const absl::StatusOr<double> begun = checkpointer->Save(step, /*last=*/true);
    if (!begun.ok()) return begun.status();
    saved = checkpointer->Finish();
  }
  return saved;
}

}  // namespace planc
