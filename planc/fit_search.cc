#include "planc/fit_search.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/catalog/parameter_count.h"
#include "compiler/pipeline.h"
#include "planc/device_memory.h"
#include "planc/fit.h"
#include "planc/schedule.h"

namespace planc {
namespace {

constexpr int64_t kMostCompiled = 48;
constexpr int64_t kFewestCompiled = 12;
// Calls of blocks in all plans that are compiled for one search; about two seconds of one core.
constexpr int64_t kCallBudget = 4'000'000;
constexpr int64_t kMostNodesFactor = 64;
constexpr int64_t kStateBytesPerParameter = 12;  // fp32 master weight and two fp32 moments

int64_t CallsOf(const Plan& plan) {
  int64_t calls = 0;
  for (const RankClass& rank_class : plan.classes) {
    for (const Program& program : rank_class.programs) {
      calls += static_cast<int64_t>(program.steps.size());
    }
  }
  return std::max<int64_t>(calls, 1);
}

const char* RecomputeText(proto::Recompute recompute) {
  if (recompute == proto::RECOMPUTE_FULL) return "full";
  return recompute == proto::RECOMPUTE_SELECTIVE ? "selective" : "none";
}

// What compiling the job with some settings gave.
struct Trial {
  MemorySettings settings;
  int64_t bytes = 0;
  double seconds = 0;
};

class FitSearch {
 public:
  FitSearch(const Plan& plan, const JobLoader& load)
      : job_(plan.job),
        load_(load),
        start_(MemorySettingsOf(plan.job)),
        base_(load({})),
        left_(std::clamp(kCallBudget / CallsOf(plan), kFewestCompiled, kMostCompiled)) {}

  std::vector<FittingChange> Run(bool more_nodes) {
    const int64_t most = more_nodes ? kMostNodesFactor : 1;
    for (int64_t factor = 1; factor <= most && trials_.empty(); factor *= 2) {
      OnNodes(start_.nodes * factor);
    }
    std::stable_sort(trials_.begin(), trials_.end(),
                     [](const Trial& a, const Trial& b) { return a.seconds < b.seconds; });
    std::vector<FittingChange> changes;
    for (const Trial& trial : trials_) {
      FittingChange change{trial.settings, SetsOf(trial.settings), trial.bytes, trial.seconds};
      const bool known = std::any_of(changes.begin(), changes.end(), [&change](const auto& other) {
        return other.sets == change.sets;
      });
      if (!known && changes.size() < kMostFittingChanges) changes.push_back(std::move(change));
    }
    return changes;
  }

 private:
  // From the mesh of the job to more tensor, then more pipeline parallelism: with everything that
  // saves memory; what fits then is relaxed.
  void OnNodes(int64_t nodes) {
    const int64_t ranks = nodes * job_.cluster().gpus_per_node();
    for (int64_t pp = start_.pp; pp <= std::min(job_.model().layers(), ranks); pp *= 2) {
      for (int64_t tp = start_.tp; tp <= job_.cluster().gpus_per_node(); tp *= 2) {
        if (trials_.size() == kMostFittingChanges || ranks % (pp * tp) != 0) continue;
        MemorySettings settings = start_;
        settings.nodes = nodes;
        settings.pp = pp;
        settings.tp = tp;
        settings.dp_replicate = 1;
        settings.dp_shard = ranks / (pp * tp);
        if (settings.dp_shard > 1) settings.zero = 3;
        if (tp > 1) settings.sequence_parallel = true;
        settings.recompute = proto::RECOMPUTE_FULL;
        settings.micro = 1;
        const std::optional<Trial> frugal = Try(settings);
        if (frugal.has_value()) trials_.push_back(Relax(*frugal));
      }
    }
  }

  // Takes back one change after another, dearest in time first, as long as the rest fits.
  Trial Relax(Trial trial) {
    using Undo = void (*)(const MemorySettings&, MemorySettings*);
    static constexpr Undo kUndo[] = {
        [](const MemorySettings& start, MemorySettings* now) { now->recompute = start.recompute; },
        [](const MemorySettings& start, MemorySettings* now) {
          if (start.recompute == proto::RECOMPUTE_NONE) {
            now->recompute = std::min(now->recompute, proto::RECOMPUTE_SELECTIVE);
          }
        },
        [](const MemorySettings& start, MemorySettings* now) { now->micro = start.micro; },
        [](const MemorySettings& start, MemorySettings* now) { now->zero = start.zero; },
        [](const MemorySettings&, MemorySettings* now) {
          now->zero = std::min<int64_t>(now->zero, 2);
        },
        [](const MemorySettings& start, MemorySettings* now) {
          now->sequence_parallel = start.sequence_parallel;
        },
    };
    for (const Undo undo : kUndo) {
      MemorySettings settings = trial.settings;
      settings.global = start_.global;
      undo(start_, &settings);
      if (SetsOf(WithGlobal(settings)) == SetsOf(trial.settings)) continue;
      const std::optional<Trial> relaxed = Try(settings);
      if (relaxed.has_value()) trial = *relaxed;
    }
    return trial;
  }

  // The settings with a global batch that their ranks can divide among themselves.
  MemorySettings WithGlobal(MemorySettings settings) const {
    int64_t unit = settings.micro * settings.dp_replicate * settings.dp_shard;
    if (job_.parallelism().pipeline().schedule() == proto::INTERLEAVED_1F1B) unit *= settings.pp;
    settings.global = (settings.global + unit - 1) / unit * unit;
    return settings;
  }

  // Nothing when a rule or the memory refuses the settings, or no trial is left.
  std::optional<Trial> Try(const MemorySettings& wanted) {
    const MemorySettings settings = WithGlobal(wanted);
    const int64_t bound = job_.cluster().memory();
    const int64_t shards = settings.pp * settings.tp * settings.dp_shard;
    if (LeastStateBytes(job_.model()) / shards > bound || left_ == 0) return std::nullopt;
    const LoadResult job = load_(SetsOf(settings));
    if (!job.ok) return std::nullopt;
    --left_;
    const absl::StatusOr<Plan> plan = CompilePlan(job.spec);
    if (!plan.ok() || plan->classes.empty()) return std::nullopt;
    const int64_t bytes = DeviceNeed(*plan, FullestClass(*plan));
    if (bytes > bound) return std::nullopt;
    return Trial{settings, bytes, PredictedStepSeconds(*plan)};
  }

  std::vector<std::string> SetsOf(const MemorySettings& settings) const {
    std::vector<std::string> sets;
    const auto add = [&sets](const char* key, int64_t start, int64_t now) {
      if (now != start) sets.push_back(absl::StrCat(key, "=", now));
    };
    add("cluster.nodes", start_.nodes, settings.nodes);
    const size_t before = sets.size();
    add("mesh.pp", start_.pp, settings.pp);
    add("mesh.dp_replicate", start_.dp_replicate, settings.dp_replicate);
    add("mesh.dp_shard", start_.dp_shard, settings.dp_shard);
    add("mesh.tp", start_.tp, settings.tp);
    // An axis that was derived from the others must be written once they are.
    const bool written = IsWritten("mesh.dp_shard");
    if (sets.size() > before && !written && settings.dp_shard == start_.dp_shard) {
      sets.push_back(absl::StrCat("mesh.dp_shard=", settings.dp_shard));
    }
    add("parallelism.zero", start_.zero, settings.zero);
    if (settings.sequence_parallel != start_.sequence_parallel) {
      sets.push_back(absl::StrCat("parallelism.sequence_parallel=",
                                  settings.sequence_parallel ? "true" : "false"));
    }
    if (settings.recompute != start_.recompute) {
      sets.push_back(absl::StrCat("recompute=", RecomputeText(settings.recompute)));
    }
    add("batch.micro", start_.micro, settings.micro);
    add("batch.global", start_.global, settings.global);
    return sets;
  }

  bool IsWritten(const std::string& key) const {
    const auto origin = base_.spec.origins.find(key);
    return origin != base_.spec.origins.end() && origin->second.line > 0;
  }

  const proto::Job& job_;
  const JobLoader& load_;
  const MemorySettings start_;
  const LoadResult base_;
  int64_t left_;  // trials
  std::vector<Trial> trials_;
};

}  // namespace

MemorySettings MemorySettingsOf(const proto::Job& job) {
  MemorySettings settings;
  settings.nodes = job.cluster().nodes();
  settings.pp = job.mesh().pp();
  settings.dp_replicate = job.mesh().dp_replicate();
  settings.dp_shard = job.mesh().dp_shard();
  settings.tp = job.mesh().tp();
  settings.zero = job.parallelism().zero();
  settings.sequence_parallel = job.parallelism().sequence_parallel();
  settings.recompute = job.recompute();
  settings.micro = job.batch().micro();
  settings.global = job.batch().global();
  return settings;
}

std::vector<FittingChange> FindFittingChanges(const Plan& plan, const JobLoader& load,
                                              bool more_nodes) {
  return FitSearch(plan, load).Run(more_nodes);
}

double PredictedStepSeconds(const Plan& plan) {
  const absl::StatusOr<Rates> rates = RatesOf(plan);
  if (!rates.ok()) return 0;
  const absl::StatusOr<StepPrediction> schedule = PredictStep(plan, *rates);
  return schedule.ok() ? schedule->seconds : 0;
}

int64_t LeastStateBytes(const proto::Model& model) {
  return ParameterCount(model) * kStateBytesPerParameter;
}

}  // namespace planc
