#include "planc/fit.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/diagnostics/render_text.h"
#include "compiler/pipeline.h"
#include "planc/commands.h"
#include "planc/device_memory.h"
#include "planc/schedule.h"
#include "planc/text.h"

namespace planc {
namespace {

constexpr size_t kChangesShown = 3;

// One way to need less memory, with what it costs.
struct Change {
  std::vector<std::string> sets;
  int64_t bytes = 0;   // of the fullest rank
  double seconds = 0;  // predicted step
};

double StepSeconds(const Plan& plan) {
  const absl::StatusOr<Rates> rates = RatesOf(plan);
  if (!rates.ok()) return 0;
  const absl::StatusOr<StepPrediction> schedule = PredictStep(plan, *rates);
  return schedule.ok() ? schedule->seconds : 0;
}

// Overrides worth trying. Those that change nothing or break a rule fall out when they are tried.
std::vector<std::vector<std::string>> Candidates(const proto::Job& job) {
  const auto set = [](const std::string& key, int64_t value) {
    return absl::StrCat(key, "=", value);
  };
  std::vector<std::vector<std::string>> candidates = {
      {"recompute=selective"}, {"recompute=full"},         {"parallelism.zero=2"},
      {"parallelism.zero=3"},  {"precision.compute=bf16"}, {"parallelism.sequence_parallel=true"},
  };
  const proto::Mesh& mesh = job.mesh();
  if (job.batch().micro() > 1) candidates.push_back({set("batch.micro", job.batch().micro() / 2)});
  if (mesh.dp_replicate() > 1) {
    candidates.push_back(
        {set("mesh.dp_replicate", 1), set("mesh.dp_shard", mesh.dp_shard() * mesh.dp_replicate())});
  }
  if (mesh.dp_shard() % 2 == 0) {
    const std::string half = set("mesh.dp_shard", mesh.dp_shard() / 2);
    candidates.push_back({half, set("mesh.tp", mesh.tp() * 2)});
    candidates.push_back({half, set("mesh.pp", mesh.pp() * 2)});
  }
  return candidates;
}

std::vector<Change> HelpfulChanges(const Plan& plan, const std::string& path,
                                   const std::vector<std::string>& sets) {
  const int64_t bound = plan.job.cluster().memory();
  const int64_t now = DeviceBytes(plan, FullestClass(plan));
  std::vector<Change> changes;
  for (const std::vector<std::string>& candidate : Candidates(plan.job)) {
    std::vector<std::string> all = sets;
    all.insert(all.end(), candidate.begin(), candidate.end());
    const LoadResult job = LoadJob(path, all);
    if (!job.ok) continue;
    const absl::StatusOr<Plan> changed = CompilePlan(job.spec);
    if (!changed.ok() || changed->classes.empty()) continue;
    const int64_t bytes = DeviceBytes(*changed, FullestClass(*changed));
    if (bytes < now) changes.push_back({candidate, bytes, StepSeconds(*changed)});
  }
  // What fits comes first, the fastest of it; then what saves most.
  std::stable_sort(changes.begin(), changes.end(), [bound](const Change& a, const Change& b) {
    const bool a_fits = a.bytes <= bound;
    if (a_fits != (b.bytes <= bound)) return a_fits;
    return a_fits ? a.seconds < b.seconds : a.bytes < b.bytes;
  });
  if (changes.size() > kChangesShown) changes.resize(kChangesShown);
  return changes;
}

void PrintChanges(const Plan& plan, const std::vector<Change>& changes, std::ostream& err) {
  const int64_t bound = plan.job.cluster().memory();
  const int64_t now = DeviceBytes(plan, FullestClass(plan));
  const double seconds = StepSeconds(plan);
  TextTable table({"change", ">saves", ">needs", ">step time", "fits"});
  for (const Change& change : changes) {
    const double ratio = seconds > 0 ? change.seconds / seconds : 1;
    table.Add({absl::StrJoin(change.sets, " "), BytesText(now - change.bytes),
               BytesText(change.bytes), absl::StrCat("x ", CountText(100 * ratio), "%"),
               change.bytes <= bound ? "yes" : "not alone"});
  }
  if (table.empty()) {
    err << "  none of the usual changes helps: use more ranks, a smaller model or a larger "
           "device\n";
    return;
  }
  err << "  cheapest changes (step time at catalogue peak rates, not calibrated)\n"
      << Wrap(table.Text(4), 4);
}

Diagnostic& AddVerdict(const Plan& plan, const LoadResult* job, DiagnosticList* list) {
  const RankClass& fullest = FullestClass(plan);
  const int64_t bound = plan.job.cluster().memory();
  const int64_t bytes = DeviceBytes(plan, fullest);
  Span span;
  if (job != nullptr) {
    const auto origin = job->spec.origins.find("cluster.memory");
    if (origin != job->spec.origins.end() && origin->second.line > 0) {
      span = {origin->second.file, origin->second.line, origin->second.column,
              origin->second.length};
    }
  }
  Diagnostic& verdict =
      list->Add(DiagnosticCode::kDoesNotFit, span,
                absl::StrCat("a rank of stage ", fullest.stage, " needs ", BytesText(bytes), ", ",
                             BytesText(bytes - bound), " more than the ", BytesText(bound),
                             " of cluster.memory"));
  verdict.notes.push_back(
      "every arena is allocated before the first step, so the rank would fail at start-up");
  return verdict;
}

}  // namespace

int64_t RankBytes(const RankClass& rank_class) {
  int64_t bytes = 0;
  for (int64_t arena : rank_class.arena_bytes) bytes += arena;
  return bytes;
}

const RankClass& FullestClass(const Plan& plan) {
  return *std::max_element(plan.classes.begin(), plan.classes.end(),
                           [&plan](const RankClass& a, const RankClass& b) {
                             return DeviceBytes(plan, a) < DeviceBytes(plan, b);
                           });
}

int CheckFits(const Plan& plan, const std::string& path, const std::vector<std::string>& sets,
              const LoadResult* job, std::ostream& err) {
  const int64_t bound = plan.job.cluster().memory();
  if (bound <= 0 || plan.classes.empty()) return kExitOk;
  const RankClass& fullest = FullestClass(plan);
  if (DeviceBytes(plan, fullest) <= bound) return kExitOk;
  DiagnosticList list;
  AddVerdict(plan, job, &list);
  err << RenderText(list, job == nullptr ? SourceTexts() : job->sources, ShowsColour(err));
  TextTable table({"kind", ">bytes", ">", ">most live"});
  for (int kind = 0; kind < kMemoryKindCount; ++kind) {
    if (fullest.arena_bytes[kind] == 0 || !IsDeviceMemory(plan, static_cast<MemoryKind>(kind))) {
      continue;
    }
    table.Add({MemoryKindName(static_cast<MemoryKind>(kind)),
               GroupedText(fullest.arena_bytes[kind]), BytesText(fullest.arena_bytes[kind]),
               GroupedText(fullest.live_bytes[kind])});
  }
  err << table.Text(4);
  if (job != nullptr) PrintChanges(plan, HelpfulChanges(plan, path, sets), err);
  return kExitDoesNotFit;
}

}  // namespace planc
