#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "planc/device_memory.h"
#include "planc/show/show.h"
#include "planc/text.h"
#include "schemas/live_bytes.h"

namespace planc {
namespace {

constexpr size_t kPoolsShown = 12;
constexpr size_t kTablesShown = 3;  // more classes than this share one table

int64_t Sum(const std::array<int64_t, kMemoryKindCount>& bytes) {
  int64_t total = 0;
  for (int64_t b : bytes) total += b;
  return total;
}

std::string Ratio(int64_t arena, int64_t live) {
  if (live <= 0) return "-";
  return absl::StrFormat("%.3f", static_cast<double>(arena) / static_cast<double>(live));
}

// Stages whose ranks need the same bytes of every kind.
struct MemoryClass {
  const RankClass* first = nullptr;
  std::array<int64_t, kMemoryKindCount> live_bytes{};  // LiveBytes
  std::vector<int64_t> stages;
};

std::vector<MemoryClass> MemoryClasses(const Plan& plan, int64_t rank) {
  std::vector<MemoryClass> classes;
  for (const RankClass& rank_class : plan.classes) {
    if (rank >= 0 && &rank_class != &ClassOfRank(plan, rank)) continue;
    const auto live_bytes = LiveBytes(plan, rank_class);
    const auto same = std::find_if(classes.begin(), classes.end(), [&](const MemoryClass& c) {
      return c.first->arena_bytes == rank_class.arena_bytes && c.live_bytes == live_bytes;
    });
    if (same == classes.end()) {
      classes.push_back({&rank_class, live_bytes, {rank_class.stage}});
    } else {
      same->stages.push_back(rank_class.stage);
    }
  }
  return classes;
}

void AddClass(const Plan& plan, const MemoryClass& memory, std::string* text,
              nlohmann::ordered_json* classes) {
  const RankClass& rank_class = *memory.first;
  const int64_t ranks = static_cast<int64_t>(memory.stages.size()) * plan.mesh.WorldSize() /
                        std::max<int64_t>(1, plan.mesh[Axis::kPp]);
  absl::StrAppend(text, ranks == 1 ? "  the rank" : absl::StrCat("  each of the ", ranks, " ranks"),
                  " of stage ", RangesText(memory.stages), "\n");
  TextTable table({"kind", ">arena", ">bytes", ">most live", ">ratio"});
  nlohmann::ordered_json data = {{"stages", memory.stages}, {"ranks", ranks}};
  for (int kind = 0; kind < kMemoryKindCount; ++kind) {
    const int64_t arena = rank_class.arena_bytes[kind];
    const int64_t live = memory.live_bytes[kind];
    const std::string name = MemoryKindName(static_cast<MemoryKind>(kind));
    data["kinds"][name] = {{"arena_bytes", arena}, {"live_bytes", live}};
    if (arena == 0 && live == 0) continue;
    table.Add({name, BytesText(arena), GroupedText(arena), GroupedText(live), Ratio(arena, live)});
  }
  const int64_t arena = Sum(rank_class.arena_bytes);
  const int64_t live = Sum(memory.live_bytes);
  table.AddRule();
  table.Add({"total", BytesText(arena), GroupedText(arena), GroupedText(live), Ratio(arena, live)});
  data["total_bytes"] = arena;
  *text += table.Text(4);
  const int64_t bound = plan.job.cluster().memory();
  if (bound > 0) {
    const int64_t reserve = DeviceReserveOf(plan, rank_class).bytes;
    const int64_t counted = DeviceBytes(plan, rank_class) + reserve;
    data["bound_bytes"] = bound;
    data["counted_bytes"] = counted;
    data["reserve_bytes"] = reserve;
    if (reserve > 0) {
      absl::StrAppendFormat(text, "    reserve %s, of CUDA context and NCCL communicators\n",
                            BytesText(reserve));
    }
    absl::StrAppendFormat(text, "    bound %s (cluster.memory), %.1f%% used, %s free%s\n",
                          BytesText(bound), 100.0 * static_cast<double>(counted) / bound,
                          BytesText(bound - counted),
                          counted < arena ? "; host_pinned is host memory and not counted" : "");
  }
  classes->push_back(std::move(data));
}

// One line for each class, for plans with many.
std::string OverviewText(const std::vector<MemoryClass>& classes) {
  TextTable table({"stages", ">weights", ">gradients", ">optimizer", ">activations", ">comm",
                   ">workspace", ">total", ">ratio"});
  for (const MemoryClass& memory : classes) {
    const auto& arena = memory.first->arena_bytes;
    const auto bytes = [&](MemoryKind kind) { return BytesText(arena[static_cast<int>(kind)]); };
    table.Add({RangesText(memory.stages), bytes(MemoryKind::kWeights),
               bytes(MemoryKind::kGradients), bytes(MemoryKind::kOptimizer),
               bytes(MemoryKind::kActivations), bytes(MemoryKind::kCommunication),
               bytes(MemoryKind::kWorkspace), BytesText(Sum(arena)),
               Ratio(Sum(arena), Sum(memory.live_bytes))});
  }
  return absl::StrCat(
      "  each rank, by stage; ratio is to the most bytes live at one time in program order\n",
      table.Text(4), "  the fullest\n");
}

void AddPools(const Plan& plan, const RankClass& rank_class, ShowSection* section) {
  struct Row {
    size_t pool;
    int64_t bytes;
  };
  std::vector<Row> rows;
  for (size_t pool = 0; pool < plan.pools.size() && pool < rank_class.pool_slots.size(); ++pool) {
    const int64_t bytes = rank_class.pool_slots[pool] * plan.pools[pool].stride;
    if (bytes > 0) rows.push_back({pool, bytes});
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const Row& a, const Row& b) { return a.bytes > b.bytes; });
  TextTable table({"pool", "kind", ">slots", ">bytes a slot", ">bytes"});
  for (size_t i = 0; i < rows.size() && i < kPoolsShown; ++i) {
    const Pool& pool = plan.pools[rows[i].pool];
    table.Add({pool.name, MemoryKindName(pool.kind),
               absl::StrCat(rank_class.pool_slots[rows[i].pool]), GroupedText(pool.stride),
               GroupedText(rows[i].bytes)});
  }
  if (table.empty()) return;
  absl::StrAppend(&section->text, "  largest pools of stage ", rank_class.stage, "\n",
                  table.Text(4));
  if (rows.size() > kPoolsShown) {
    absl::StrAppend(&section->text, "    ... and ", rows.size() - kPoolsShown, " smaller ones\n");
  }
}

}  // namespace

ShowSection ShowMemory(const ShowInput& input) {
  const Plan& plan = input.plan;
  ShowSection section{"memory", "", nlohmann::ordered_json::array()};
  const std::vector<MemoryClass> classes = MemoryClasses(plan, input.rank);
  const auto fullest = std::max_element(
      classes.begin(), classes.end(), [](const MemoryClass& a, const MemoryClass& b) {
        return Sum(a.first->arena_bytes) < Sum(b.first->arena_bytes);
      });
  const bool overview = classes.size() > kTablesShown;
  if (overview) section.text = OverviewText(classes);
  for (auto memory = classes.begin(); memory != classes.end(); ++memory) {
    std::string text;
    AddClass(plan, *memory, &text, &section.data);
    if (!overview || memory == fullest) section.text += text;
  }
  if (fullest != classes.end()) AddPools(plan, *fullest->first, &section);
  return section;
}

}  // namespace planc
