#include "runtime/checkpoint/data_changes.h"

#include <algorithm>
#include <optional>

#include "runtime/data/token_loader.h"
#include "schemas/status.h"

namespace planc {
namespace {

bool IsAllowed(const proto::Job& job, const std::string& key) {
  const auto& allowed = job.checkpoint().allow_changes();
  return std::any_of(allowed.begin(), allowed.end(),
                     [&](const std::string& entry) { return entry == key || entry == "data"; });
}

// The changes are told in the order of the keys of a job.
void Add(JobChange change, std::vector<JobChange>* changes) {
  const auto is_later = [](const JobChange& entry) {
    return entry.key.rfind("checkpoint.", 0) == 0 || entry.key.rfind("run.", 0) == 0;
  };
  changes->insert(std::find_if(changes->begin(), changes->end(), is_later), std::move(change));
}

}  // namespace

absl::Status AddDataChanges(const DataIdentity* then, const proto::Job& job,
                            const std::string& directory, bool in_run, ResumeCheck* check) {
  if (then == nullptr) return absl::OkStatus();
  PLANC_ASSIGN_OR_RETURN(const DataChanges now, CompareData(*then, job, directory));
  check->data = now.train.change;
  const auto add = [&](const char* key, const DataComparison& comparison, ChangeVerdict verdict) {
    if (comparison.change == DataChange::kSame) return;
    Add({key, comparison.then, comparison.now, verdict}, &check->changes);
  };
  const bool refused = in_run && now.train.change == DataChange::kReplaced;
  add("data.train", now.train,
      !refused                       ? ChangeVerdict::kNoticed
      : IsAllowed(job, "data.train") ? ChangeVerdict::kAllowed
                                     : ChangeVerdict::kRefused);
  add("data.validation", now.validation, ChangeVerdict::kNoticed);
  return absl::OkStatus();
}

DataPosition PositionIn(const Manifest& manifest, int64_t tokens_now) {
  if (manifest.data.has_value()) return manifest.data->position;
  const proto::Batch& batch = manifest.job.batch();
  // Imported checkpoints are of no job that was trained.
  const int64_t sequence = std::max<int64_t>(1, batch.sequence());
  const int64_t windows = std::max<int64_t>(1, WindowCount(tokens_now, sequence));
  const DataPosition first = FirstPosition(windows, manifest.job.run().seed());
  // Of a manifest that may say anything; what is too large for a position is refused as one.
  int64_t tokens = 0;
  int64_t samples = 0;
  if (__builtin_mul_overflow(manifest.step, batch.global(), &samples) ||
      __builtin_mul_overflow(samples, sequence, &tokens)) {
    return {-1, -1, {}};
  }
  return Advanced(first, samples, sequence);
}

absl::StatusOr<DataPosition> PositionAfter(const Manifest& manifest, const proto::Job& job,
                                           DataChange change, int64_t tokens,
                                           std::vector<std::string>* notices) {
  const DataPosition saved = PositionIn(manifest, tokens);
  PLANC_RETURN_IF_ERROR(CheckPosition(saved));
  const int64_t sequence = job.batch().sequence();
  const DataNow now = {WindowCount(tokens, sequence), sequence, job.run().seed(),
                       change == DataChange::kReplaced};
  return GoOnFrom(saved, std::max<int64_t>(1, manifest.job.batch().sequence()), now, notices);
}

}  // namespace planc
