// planc diff: what changes between two jobs or plans.
#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "planc/command/job_value.h"
#include "planc/commands.h"
#include "planc/fit.h"
#include "planc/flags.h"
#include "planc/load_plan.h"
#include "planc/schedule.h"
#include "planc/show/comm_table.h"
#include "planc/show/show.h"
#include "planc/text.h"

namespace planc {
namespace {

using Json = nlohmann::ordered_json;

// One named number or text of both sides.
struct Row {
  std::string name;
  std::string a;
  std::string b;
  std::string note;
};

struct KeyDifference {
  std::string key;
  std::string a;
  std::string b;
  std::string a_origin;
  std::string b_origin;
  bool convergence = false;
};

std::string OriginOf(const LoadedPlan& side, const std::string& key) {
  if (!side.job) return "plan file";
  const auto found = side.job->spec.origins.find(key);
  return found == side.job->spec.origins.end() ? "" : OriginText(found->second);
}

// Differing keys, those that affect convergence first.
std::vector<KeyDifference> DifferingKeys(const LoadedPlan& a, const LoadedPlan& b) {
  std::vector<KeyDifference> differences;
  for (const JobKey& key : AllJobKeys()) {
    const std::string of_a = ValueText(a.plan.job, key);
    const std::string of_b = ValueText(b.plan.job, key);
    if (of_a == of_b) continue;
    differences.push_back({key.path, of_a, of_b, OriginOf(a, key.path), OriginOf(b, key.path),
                           key.key->convergence()});
  }
  std::stable_partition(differences.begin(), differences.end(),
                        [](const KeyDifference& d) { return d.convergence; });
  return differences;
}

std::string SignedBytes(int64_t bytes) {
  return absl::StrCat(bytes > 0 ? "+" : "", BytesText(bytes));
}

std::vector<Row> MemoryRows(const Plan& a, const Plan& b) {
  const RankClass& of_a = FullestClass(a);
  const RankClass& of_b = FullestClass(b);
  std::vector<Row> rows;
  const auto add = [&](const std::string& name, int64_t x, int64_t y) {
    if (x != y) rows.push_back({name, GroupedText(x), GroupedText(y), SignedBytes(y - x)});
  };
  for (int kind = 0; kind < kMemoryKindCount; ++kind) {
    add(MemoryKindName(static_cast<MemoryKind>(kind)), of_a.arena_bytes[kind],
        of_b.arena_bytes[kind]);
  }
  add("total", RankBytes(of_a), RankBytes(of_b));
  return rows;
}

// Bytes that all ranks send in a step, by group and opcode.
std::map<std::string, int64_t> SentBytes(const Plan& plan) {
  std::map<std::string, int64_t> sent;
  const int64_t ranks = plan.mesh.WorldSize() / std::max<int64_t>(1, plan.mesh[Axis::kPp]);
  for (const RankClass& rank_class : plan.classes) {
    for (const CommRow& row : CommTable(plan, rank_class, ProgramKind::kStep)) {
      if (row.bytes_per_rank == 0) continue;
      sent[absl::StrCat(plan.groups[row.group].name, " ", TraitsOf(row.opcode).text)] +=
          row.bytes_per_rank * ranks;
    }
  }
  return sent;
}

std::vector<Row> CommRows(const Plan& a, const Plan& b) {
  std::map<std::string, std::pair<int64_t, int64_t>> both;
  for (const auto& [name, bytes] : SentBytes(a)) both[name].first = bytes;
  for (const auto& [name, bytes] : SentBytes(b)) both[name].second = bytes;
  std::vector<Row> rows;
  for (const auto& [name, bytes] : both) {
    if (bytes.first == bytes.second) continue;
    rows.push_back({name, BytesText(bytes.first), BytesText(bytes.second),
                    SignedBytes(bytes.second - bytes.first)});
  }
  return rows;
}

int64_t StepCalls(const Plan& plan) {
  int64_t calls = 0;
  for (const RankClass& rank_class : plan.classes) {
    for (const Repeat& repeat : rank_class.programs[static_cast<int>(ProgramKind::kStep)].steps) {
      calls += repeat.count * static_cast<int64_t>(repeat.calls.size());
    }
  }
  return calls;
}

std::string StepTime(const Plan& plan) {
  const absl::StatusOr<Rates> rates = RatesOf(plan);
  if (!rates.ok()) return "unknown";
  const absl::StatusOr<StepPrediction> schedule = PredictStep(plan, *rates);
  return schedule.ok() ? SecondsText(schedule->seconds) : "unknown";
}

std::vector<Row> ScheduleRows(const Plan& a, const Plan& b) {
  std::vector<Row> rows;
  const auto add = [&](const std::string& name, const std::string& x, const std::string& y,
                       const std::string& note = "") {
    if (x != y) rows.push_back({name, x, y, note});
  };
  add("ranks", absl::StrCat(a.mesh.WorldSize()), absl::StrCat(b.mesh.WorldSize()));
  add("stages", absl::StrCat(a.classes.size()), absl::StrCat(b.classes.size()));
  add("microbatches a rank", absl::StrCat(a.microbatches), absl::StrCat(b.microbatches));
  add("blocks", absl::StrCat(a.blocks.size()), absl::StrCat(b.blocks.size()));
  add("calls in a step, all stages", GroupedText(StepCalls(a)), GroupedText(StepCalls(b)));
  add("step time, at least", StepTime(a), StepTime(b), "at catalogue peak rates");
  return rows;
}

void PrintKeys(const std::vector<KeyDifference>& keys, std::ostream& out) {
  if (keys.empty()) return;
  out << "keys (! changes the loss curve)\n";
  for (const KeyDifference& key : keys) {
    out << (key.convergence ? "! " : "  ") << key.key << "\n"
        << Wrap(absl::StrCat("    - ", key.a, "  (", key.a_origin, ")"), 4) << "\n"
        << Wrap(absl::StrCat("    + ", key.b, "  (", key.b_origin, ")"), 4) << "\n";
  }
  out << "\n";
}

void PrintRows(const std::string& title, const std::vector<Row>& rows, std::ostream& out) {
  if (rows.empty()) return;
  TextTable table({"", ">A", ">B", ">"});
  for (const Row& row : rows) table.Add({row.name, row.a, row.b, row.note});
  out << title << "\n" << Wrap(table.Text(2), 4) << "\n";
}

Json RowsJson(const std::vector<Row>& rows) {
  Json json = Json::array();
  for (const Row& row : rows) {
    json.push_back({{"name", row.name}, {"a", row.a}, {"b", row.b}});
  }
  return json;
}

}  // namespace

int RunDiff(const std::vector<std::string>& args, std::ostream& out, std::ostream& err) {
  const absl::StatusOr<Flags> flags = ParseFlags("diff", args);
  if (!flags.ok()) return UsageError("diff", flags.status(), err);
  if (flags->positional.size() != 2) return UsageError("diff", "two jobs or plans are needed", err);
  LoadedPlan a;
  LoadedPlan b;
  int code = LoadPlan("planc diff", flags->positional[0], {}, err, &a);
  if (code != kExitOk) return code;
  code = LoadPlan("planc diff", flags->positional[1], flags->All("--set"), err, &b);
  if (code != kExitOk) return code;
  const std::vector<KeyDifference> keys = DifferingKeys(a, b);
  const std::vector<Row> memory = MemoryRows(a.plan, b.plan);
  const std::vector<Row> comm = CommRows(a.plan, b.plan);
  const std::vector<Row> schedule = ScheduleRows(a.plan, b.plan);
  if (flags->Get("--format") == "json") {
    Json json = {{"format", "planc-diff"}, {"version", 1}, {"a", a.hash}, {"b", b.hash}};
    json["keys"] = Json::array();
    for (const KeyDifference& key : keys) {
      json["keys"].push_back({{"key", key.key},
                              {"a", key.a},
                              {"b", key.b},
                              {"a_origin", key.a_origin},
                              {"b_origin", key.b_origin},
                              {"convergence", key.convergence}});
    }
    json["memory"] = RowsJson(memory);
    json["comm"] = RowsJson(comm);
    json["schedule"] = RowsJson(schedule);
    out << JsonText(json, 2);
  } else {
    out << "A  " << flags->positional[0] << "  plan " << a.hash << "\n"
        << "B  " << flags->positional[1] << "  plan " << b.hash << "\n\n";
    PrintKeys(keys, out);
    PrintRows("memory of the fullest rank, bytes", memory, out);
    PrintRows("communication of one step, all ranks", comm, out);
    PrintRows("schedule", schedule, out);
    if (a.hash == b.hash) out << "no differences: both are the same plan\n";
  }
  return a.hash == b.hash ? kExitOk : kExitDifferent;
}

}  // namespace planc
