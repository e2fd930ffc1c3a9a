#include "runtime/checkpoint/job_changes.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "runtime/step/schedule.h"
#include "schemas/counted.h"
#include "schemas/job_value.h"
#include "schemas/options.pb.h"

namespace planc {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

constexpr char kDecayKey[] = "lr_schedule.decay_steps";

// Whether `path` is one of `names` or lies in a section that is.
bool Covers(const std::vector<std::string>& names, const std::string& path) {
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    return path == name || absl::StartsWith(path, absl::StrCat(name, "."));
  });
}

class JobComparison {
 public:
  explicit JobComparison(const proto::Job& now)
      : allowed_(now.checkpoint().allow_changes().begin(), now.checkpoint().allow_changes().end()) {
  }

  // Compares the fields of one section; `path` is its path and a dot, or empty at the top.
  void Compare(const Message& saved, const Message& now, const std::string& path) {
    for (int index = 0; index < saved.GetDescriptor()->field_count(); ++index) {
      const FieldDescriptor& field = *saved.GetDescriptor()->field(index);
      const std::string key = absl::StrCat(path, field.name());
      if (field.type() == FieldDescriptor::TYPE_MESSAGE) {
        Compare(saved.GetReflection()->GetMessage(saved, &field),
                now.GetReflection()->GetMessage(now, &field), absl::StrCat(key, "."));
        continue;
      }
      const std::optional<ChangeVerdict> verdict = VerdictOf(key, field);
      if (!verdict.has_value()) continue;
      JobChange change{key, FieldText(saved, field), FieldText(now, field), *verdict};
      if (change.saved != change.now) changes_.push_back(std::move(change));
    }
  }

  std::vector<JobChange> Take() { return std::move(changes_); }

 private:
  // Nothing for keys that do not matter to a resume, such as paths.
  std::optional<ChangeVerdict> VerdictOf(const std::string& key,
                                         const FieldDescriptor& field) const {
    if (key == "model.preset") return std::nullopt;
    if (field.options().GetExtension(proto::key).convergence()) {
      const bool strict = Covers(
          {"model", "optimizer", "lr_schedule", "precision.master", "precision.optimizer_state"},
          key);
      if (!strict) return ChangeVerdict::kNoticed;
      return Covers(allowed_, key) ? ChangeVerdict::kAllowed : ChangeVerdict::kRefused;
    }
    const bool spreads =
        Covers({"mesh", "parallelism", "batch.micro", "recompute", "cluster.device"}, key);
    return spreads ? std::optional(ChangeVerdict::kLayout) : std::nullopt;
  }

  const std::vector<std::string> allowed_;
  std::vector<JobChange> changes_;
};

// A rate that is another by more than this share is a jump.
constexpr double kRateTolerance = 0.1;

// What another end of the decay does, all else being as it was.
void JudgeDecay(const proto::Job& saved, const proto::Job& now, std::optional<int64_t> step,
                std::vector<JobChange>* changes) {
  const auto change = std::find_if(changes->begin(), changes->end(),
                                   [](const JobChange& entry) { return entry.key == kDecayKey; });
  if (change == changes->end()) return;
  change->saved = absl::StrCat(DecayEnd(saved));  // jobs of before there was the key leave it unset
  proto::Job other = saved;
  other.mutable_lr_schedule()->set_decay_steps(DecayEnd(now));
  const bool constant = saved.lr_schedule().decay() == proto::CONSTANT;
  if (DecayEnd(saved) == DecayEnd(now) || (constant && step.has_value())) {
    changes->erase(change);
    return;
  }
  if (!step.has_value() || change->verdict != ChangeVerdict::kRefused) return;
  if (*step >= now.run().steps()) {  // no step is left whose rate it could change
    change->verdict = ChangeVerdict::kNoticed;
    return;
  }
  const double before = LearningRate(saved, *step);
  const auto& allowed = now.checkpoint().allow_changes();
  if (std::abs(LearningRate(other, *step) - before) <= kRateTolerance * before) {
    change->verdict = ChangeVerdict::kNoticed;
  } else if (std::find(allowed.begin(), allowed.end(), "run.steps") != allowed.end()) {
    change->verdict = ChangeVerdict::kAllowed;
  }
}

}  // namespace

std::vector<JobChange> JobChanges(const proto::Job& saved, const proto::Job& now,
                                  std::optional<int64_t> step) {
  JobComparison comparison(now);
  comparison.Compare(saved, now, "");
  std::vector<JobChange> changes = comparison.Take();
  JudgeDecay(saved, now, step, &changes);
  return changes;
}

std::string RateChange(const proto::Job& saved, const proto::Job& now, int64_t step) {
  const double before = LearningRate(saved, step);
  const double after = LearningRate(now, step);
  if (before == after || step >= now.run().steps()) return "";
  return absl::StrFormat("the learning rate of step %d is %.3g, and %.3g with the checkpoint's job",
                         step + 1, after, before);
}

std::vector<JobChange> JobChangesInRun(const proto::Job& saved, const proto::Job& now,
                                       std::optional<int64_t> step) {
  std::vector<JobChange> changes = JobChanges(saved, now, step);
  const std::vector<std::string> allowed(now.checkpoint().allow_changes().begin(),
                                         now.checkpoint().allow_changes().end());
  for (JobChange& change : changes) {
    // Another training by the same model; what it is validated on does not make it one.
    const bool other = Covers({"data", "run.seed"}, change.key) && change.key != "data.validation";
    if (change.verdict != ChangeVerdict::kNoticed || !other) continue;
    change.verdict =
        Covers(allowed, change.key) ? ChangeVerdict::kAllowed : ChangeVerdict::kRefused;
  }
  return changes;
}

std::string ChangeText(const JobChange& change) {
  return absl::StrCat(change.key, " is ", change.saved, " in the checkpoint, ", change.now,
                      " in the job");
}

std::string MeshSizesText(const proto::Mesh& mesh) {
  // ep and etp borrow ranks of the other axes and never multiply them.
  const std::vector<std::pair<const char*, int64_t>> axes = {{"pp", mesh.pp()},
                                                             {"dp_replicate", mesh.dp_replicate()},
                                                             {"dp_shard", mesh.dp_shard()},
                                                             {"cp", mesh.cp()},
                                                             {"tp", mesh.tp()}};
  std::vector<std::string> parts;
  int64_t ranks = 1;
  for (const auto& [name, size] : axes) {
    ranks *= size;
    if (size > 1) parts.push_back(absl::StrCat(name, " ", size));
  }
  if (ranks == 1) return "one rank";
  return absl::StrCat(absl::StrJoin(parts, " "), " (", Counted(ranks, "rank"), ")");
}

}  // namespace planc
