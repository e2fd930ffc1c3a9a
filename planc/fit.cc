#include "planc/fit.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/diagnostics/render_text.h"
#include "compiler/pipeline.h"
#include "planc/commands.h"
#include "planc/device_memory.h"
#include "planc/text.h"
#include "schemas/counted.h"
#include "schemas/live_bytes.h"

namespace planc {
namespace {

constexpr size_t kChangesShown = 3;
constexpr int kChangeColumn = 36;  // where long changes go on, about below their beginning

// One way to need less memory, with what it costs.
struct Change {
  std::vector<std::string> sets;
  int64_t bytes = 0;   // of the fullest rank
  double seconds = 0;  // predicted step
};

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

// Single changes that help, when no combination of them fits.
std::vector<Change> HelpfulChanges(const Plan& plan, const JobLoader& load) {
  const int64_t now = DeviceNeed(plan, FullestClass(plan));
  std::vector<Change> changes;
  for (const std::vector<std::string>& candidate : Candidates(plan.job)) {
    const LoadResult job = load(candidate);
    if (!job.ok) continue;
    const absl::StatusOr<Plan> changed = CompilePlan(job.spec);
    if (!changed.ok() || changed->classes.empty()) continue;
    const int64_t bytes = DeviceNeed(*changed, FullestClass(*changed));
    if (bytes < now) changes.push_back({candidate, bytes, PredictedStepSeconds(*changed)});
  }
  std::stable_sort(changes.begin(), changes.end(),
                   [](const Change& a, const Change& b) { return a.bytes < b.bytes; });
  if (changes.size() > kChangesShown) changes.resize(kChangesShown);
  return changes;
}

std::string ChangeTable(const Plan& plan, const std::vector<Change>& changes) {
  const int64_t bound = plan.job.cluster().memory();
  const int64_t now = DeviceNeed(plan, FullestClass(plan));
  const double seconds = PredictedStepSeconds(plan);
  TextTable table({">saves", ">needs", ">step time", "fits", "change"});
  for (const Change& change : changes) {
    const double ratio = seconds > 0 ? change.seconds / seconds : 1;
    table.Add({BytesText(now - change.bytes), BytesText(change.bytes),
               absl::StrCat("x ", CountText(100 * ratio), "%"),
               change.bytes <= bound ? "yes" : "not alone", absl::StrJoin(change.sets, " ")});
  }
  return table.Text(4);
}

std::string KindTable(const Plan& plan, const RankClass& fullest) {
  const std::array<int64_t, kMemoryKindCount> live_bytes = LiveBytes(plan, fullest);
  TextTable table({"kind", ">bytes", ">", ">most live"});
  for (int kind = 0; kind < kMemoryKindCount; ++kind) {
    if (fullest.arena_bytes[kind] == 0 || !IsDeviceMemory(plan, static_cast<MemoryKind>(kind))) {
      continue;
    }
    table.Add({MemoryKindName(static_cast<MemoryKind>(kind)),
               GroupedText(fullest.arena_bytes[kind]), BytesText(fullest.arena_bytes[kind]),
               GroupedText(live_bytes[kind])});
  }
  const DeviceReserve reserve = DeviceReserveOf(plan, fullest);
  if (reserve.bytes > 0) {
    table.Add({"reserve", GroupedText(reserve.bytes), BytesText(reserve.bytes), ""});
  }
  return table.Text(4);
}

// Machines without which the model's state cannot be held, however it is split.
int64_t LeastNodes(const proto::Job& job) {
  const int64_t node_bytes = job.cluster().memory() * job.cluster().gpus_per_node();
  return (LeastStateBytes(job.model()) + node_bytes - 1) / node_bytes;
}

// The keys that the verdict points at, the one that decides first: a bound that the job sets, the
// size of the cluster where no mesh helps, else the mesh.
std::vector<std::string> DecidingKeys(const proto::Job& job) {
  std::vector<std::string> keys = {"cluster.memory"};
  if (LeastNodes(job) > job.cluster().nodes()) {
    keys.insert(keys.end(), {"cluster.nodes", "cluster.gpus_per_node"});
  }
  keys.insert(keys.end(), {"mesh.dp_shard", "mesh.tp", "mesh.pp", "mesh.dp_replicate",
                           "cluster.gpus_per_node", "model.preset", "model.layers"});
  return keys;
}

void AddPlaces(const proto::Job& job, const LoadResult& loaded, Diagnostic* verdict) {
  std::string model;  // one key of the model is enough
  for (const std::string& key : DecidingKeys(job)) {
    const auto found = loaded.spec.origins.find(key);
    if (found == loaded.spec.origins.end() || found->second.line == 0) continue;
    const Origin& origin = found->second;
    const Span span{origin.file, origin.line, origin.column, origin.length};
    if (verdict->label.empty()) {
      verdict->span = span;
      verdict->label = key;
    } else if (key.rfind("model.", 0) == 0 && model.empty()) {
      model = key;
      verdict->secondary.push_back({span, key});
    }
  }
}

// The sentences that matter: what no choice of activations changes, and how many machines it takes.
void AddNotes(const Plan& plan, const RankClass& fullest, Diagnostic* verdict) {
  const proto::Job& job = plan.job;
  const int64_t bound = job.cluster().memory();
  const auto arena = [&fullest](MemoryKind kind) {
    return fullest.arena_bytes[static_cast<int>(kind)];
  };
  const int64_t state =
      arena(MemoryKind::kWeights) + arena(MemoryKind::kGradients) + arena(MemoryKind::kOptimizer);
  verdict->notes.push_back(absl::StrCat(
      "weights, gradients and moments ", state > bound ? "alone need " : "need ", BytesText(state),
      " of the ", BytesText(bound), ", activations ", BytesText(arena(MemoryKind::kActivations))));
  const DeviceReserve reserve = DeviceReserveOf(plan, fullest);
  if (reserve.bytes > 0) {
    verdict->notes.push_back(absl::StrCat(
        BytesText(reserve.bytes),
        " of it are a reserve for what libraries take: the CUDA context, ",
        BytesText(kContextReserveBytes), ", and ", Counted(reserve.communicators, "communicator"),
        " of NCCL, ", BytesText(kCommunicatorReserveBytes), " each"));
  }
  const int64_t least = LeastNodes(job);
  if (least > job.cluster().nodes()) {
    verdict->notes.push_back(
        absl::StrCat("at least ", least, " nodes of ", job.cluster().gpus_per_node(),
                     " are needed, whatever the mesh: fp32 master weights and moments are ",
                     BytesText(LeastStateBytes(job.model())), ", without activations"));
  }
  verdict->notes.push_back(
      "every arena is allocated before the first step, so the rank would fail at start-up");
}

// The changes that make the job fit, or at least help.
void AddChanges(const Plan& plan, const JobLoader& load, FitReport* report) {
  std::vector<Change> changes;
  for (const FittingChange& fitting : FindFittingChanges(plan, load, /*more_nodes=*/true)) {
    changes.push_back({fitting.sets, fitting.bytes, fitting.seconds});
  }
  const bool fits = !changes.empty();
  if (fits) {
    report->verdict.fix =
        absl::StrCat("for example --set ", absl::StrJoin(changes[0].sets, " --set "));
  } else {
    changes = HelpfulChanges(plan, load);
    report->verdict.notes.push_back(
        "no combination of mesh, zero, recompute and micro that was tried fits, nor 64 times as "
        "many nodes: use a smaller model or a larger device");
  }
  for (const Change& change : changes) {
    report->details.push_back(
        absl::StrCat(fits ? "fits, with " : "helps: ", absl::StrJoin(change.sets, " "), ": ",
                     BytesText(change.bytes)));
  }
  if (changes.empty()) return;
  absl::StrAppend(&report->tables,
                  fits ? "  cheapest changes that fit, each compiled" : "  cheapest changes",
                  " (step time at catalogue peak rates, not calibrated)\n",
                  Wrap(ChangeTable(plan, changes), kChangeColumn));
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
                             return DeviceNeed(plan, a) < DeviceNeed(plan, b);
                           });
}

std::optional<FitReport> ReportMisfit(const Plan& plan, const LoadResult* job,
                                      const JobLoader& load) {
  const int64_t bound = plan.job.cluster().memory();
  if (bound <= 0 || plan.classes.empty()) return std::nullopt;
  const RankClass& fullest = FullestClass(plan);
  const int64_t bytes = DeviceNeed(plan, fullest);
  if (bytes <= bound) return std::nullopt;
  DiagnosticList list;
  FitReport report;
  report.verdict =
      list.Add(DiagnosticCode::kDoesNotFit, Span(),
               absl::StrCat("a rank of stage ", fullest.stage, " needs ", BytesText(bytes), ", ",
                            BytesText(bytes - bound), " more than the ", BytesText(bound),
                            " of cluster.memory"));
  if (job != nullptr) AddPlaces(plan.job, *job, &report.verdict);
  AddNotes(plan, fullest, &report.verdict);
  report.tables = KindTable(plan, fullest);
  if (job != nullptr) AddChanges(plan, load, &report);
  return report;
}

int CheckFits(const Plan& plan, const std::string& path, const std::vector<std::string>& sets,
              const LoadResult* job, std::ostream& err) {
  const std::optional<FitReport> report = ReportMisfit(plan, job, LoaderOf(path, sets));
  if (!report.has_value()) return kExitOk;
  DiagnosticList list;
  list.Append(report->verdict);
  err << RenderText(list, job == nullptr ? SourceTexts() : job->sources, ShowsColour(err))
      << report->tables;
  return kExitDoesNotFit;
}

JobLoader LoaderOf(const std::string& path, const std::vector<std::string>& sets) {
  return [path, sets](const std::vector<std::string>& more) {
    std::vector<std::string> all = sets;
    all.insert(all.end(), more.begin(), more.end());
    return LoadJob(path, all);
  };
}

}  // namespace planc
