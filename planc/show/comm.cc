#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planc/show/comm_table.h"
#include "planc/show/show.h"
#include "planc/text.h"
#include "runtime/process_group/group_use.h"

namespace planc {
namespace {

// Stages that do the same in one row.
struct MergedRow {
  CommRow row;
  std::vector<int64_t> stages;
};

std::vector<MergedRow> Merge(const ShowInput& input) {
  std::vector<MergedRow> merged;
  for (const RankClass& rank_class : input.plan.classes) {
    if (input.rank >= 0 && &rank_class != &ClassOfRank(input.plan, input.rank)) continue;
    for (const CommRow& row : CommTable(input.plan, rank_class, ProgramKind::kStep)) {
      const auto same = std::find_if(merged.begin(), merged.end(), [&](const MergedRow& m) {
        return m.row.group == row.group && m.row.opcode == row.opcode && m.row.dtype == row.dtype &&
               m.row.calls == row.calls && m.row.bytes_per_rank == row.bytes_per_rank;
      });
      if (same == merged.end()) {
        merged.push_back({row, {rank_class.stage}});
      } else {
        same->stages.push_back(rank_class.stage);
      }
    }
  }
  std::stable_sort(merged.begin(), merged.end(), [](const MergedRow& a, const MergedRow& b) {
    return std::tuple(a.row.group, a.row.opcode, a.row.dtype) <
           std::tuple(b.row.group, b.row.opcode, b.row.dtype);
  });
  return merged;
}

// Communicators that a rank of the stage connects.
int64_t Communicators(const Plan& plan, int64_t stage) {
  Coordinates first{};
  first[static_cast<int>(Axis::kPp)] = stage;
  return static_cast<int64_t>(ConnectionsOf(plan, plan.mesh.RankOf(first)).size());
}

// "6 a rank", or by stage where they differ: "5 a rank of stage 0, 6 a rank of stage 1-2".
std::string CommunicatorsText(const ShowInput& input) {
  std::map<int64_t, std::vector<int64_t>> stages;
  for (const RankClass& rank_class : input.plan.classes) {
    if (input.rank >= 0 && &rank_class != &ClassOfRank(input.plan, input.rank)) continue;
    stages[Communicators(input.plan, rank_class.stage)].push_back(rank_class.stage);
  }
  std::vector<std::string> parts;
  for (const auto& [count, of] : stages) {
    parts.push_back(stages.size() == 1 ? absl::StrCat(count, " a rank")
                                       : absl::StrCat(count, " a rank of stage ", RangesText(of)));
  }
  return absl::StrCat(absl::StrJoin(parts, ", "),
                      ", one for each group and stream or pair of stages");
}

}  // namespace

ShowSection ShowComm(const ShowInput& input) {
  const Plan& plan = input.plan;
  const int64_t ranks_of_stage = plan.mesh.WorldSize() / std::max<int64_t>(1, plan.mesh[Axis::kPp]);
  ShowSection section{"comm", "", nlohmann::ordered_json::array()};
  TextTable table({"group", ">ranks", "opcode", "dtype", "stages", ">calls a rank",
                   ">sent by a rank", ">by all ranks"});
  int64_t total = 0;
  for (const MergedRow& merged : Merge(input)) {
    const GroupKind& group = plan.groups[merged.row.group];
    const int64_t all =
        merged.row.bytes_per_rank * ranks_of_stage * static_cast<int64_t>(merged.stages.size());
    const int64_t size = GroupSize(plan.mesh, group);
    total += all;
    table.Add({group.name, absl::StrCat(size), TraitsOf(merged.row.opcode).text,
               DTypeName(merged.row.dtype), RangesText(merged.stages),
               GroupedText(merged.row.calls), BytesText(merged.row.bytes_per_rank),
               BytesText(all)});
    section.data.push_back({{"group", group.name},
                            {"size", size},
                            {"opcode", TraitsOf(merged.row.opcode).text},
                            {"dtype", DTypeName(merged.row.dtype)},
                            {"stages", merged.stages},
                            {"calls_per_rank", merged.row.calls},
                            {"bytes_per_rank", merged.row.bytes_per_rank},
                            {"bytes", all}});
  }
  if (table.empty()) {
    section.text = "  none: a step needs no other rank\n";
    return section;
  }
  table.AddRule();
  table.Add({"total", "", "", "", "", "", "", BytesText(total)});
  section.text = Wrap("  one step\n" + table.Text(4), 4);
  absl::StrAppend(&section.text, "  communicators ", CommunicatorsText(input), "\n");
  return section;
}

}  // namespace planc
