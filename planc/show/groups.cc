#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planc/show/show.h"
#include "planc/text.h"
#include "schemas/counted.h"

namespace planc {
namespace {

constexpr size_t kGroupsShown = 8;
constexpr size_t kRangesShown = 8;
constexpr size_t kMembersInData = 64;

std::string AxesText(const GroupKind& kind) {
  std::vector<std::string> names;
  for (Axis axis : kAllAxes) {
    if ((kind.axes & AxisBit(axis)) != 0) names.push_back(AxisName(axis));
  }
  std::string text = absl::StrJoin(names, " x ");
  if (kind.pipeline_ends) text += " (first and last stage)";
  return text;
}

// Number of groups of a kind, without listing them.
int64_t GroupCount(const Mesh& mesh, const GroupKind& kind) {
  int64_t members_on_axes = 1;
  for (Axis axis : kAllAxes) {
    if ((kind.axes & AxisBit(axis)) != 0) members_on_axes *= mesh[axis];
  }
  return mesh.WorldSize() / members_on_axes;
}

void AddKind(const ShowInput& input, const GroupKind& kind, ShowSection* section) {
  const Plan& plan = input.plan;
  const int64_t size = GroupSize(plan.mesh, kind);
  const int64_t count = GroupCount(plan.mesh, kind);
  absl::StrAppend(&section->text, "  ", kind.name, ": ", Counted(count, "group"), " of ",
                  Counted(size, "rank"), " over ", AxesText(kind), "\n");
  nlohmann::ordered_json data = {{"name", kind.name}, {"groups", count}, {"size", size}};
  data["axes"] = AxesText(kind);
  data["members"] = nlohmann::ordered_json::array();
  std::vector<std::vector<int64_t>> groups;
  if (input.rank >= 0) {
    groups = {GroupMembers(plan.mesh, kind, input.rank)};
  } else if (size > 1) {
    groups = AllGroups(plan.mesh, kind);
  }
  for (size_t i = 0; i < groups.size(); ++i) {
    if (i < kMembersInData) data["members"].push_back(groups[i]);
    if (i >= kGroupsShown || groups[i].empty()) continue;
    absl::StrAppend(&section->text, "    ", MembersText(plan, groups[i], kRangesShown), "\n");
  }
  if (groups.size() > kGroupsShown) {
    absl::StrAppend(&section->text, "    ... and ",
                    Counted(groups.size() - kGroupsShown, "more group"), "\n");
  }
  section->data.push_back(std::move(data));
}

}  // namespace

ShowSection ShowGroups(const ShowInput& input) {
  ShowSection section{"groups", "  members as node:device\n", nlohmann::ordered_json::array()};
  for (const GroupKind& kind : input.plan.groups) AddKind(input, kind, &section);
  section.text = Wrap(section.text, 2);
  return section;
}

}  // namespace planc
