// The list of sections and what they share.
#include "planc/show/show.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planc/text.h"
#include "schemas/counted.h"

namespace planc {

std::vector<std::string> SectionNames() {
  return {
#define PLANC_SECTION_NAME(function, text) text,
      PLANC_SECTIONS(PLANC_SECTION_NAME)
#undef PLANC_SECTION_NAME
  };
}

ShowSection MakeSection(const std::string& name, const ShowInput& input) {
#define PLANC_SECTION_CASE(function, text) \
  if (name == text) return Show##function(input);
  PLANC_SECTIONS(PLANC_SECTION_CASE)
#undef PLANC_SECTION_CASE
  return {name, "", {}};
}

std::vector<std::string> NotModelled(const Plan& plan) {
  std::vector<std::string> lines;
  if (plan.job.cluster().device() == "host") {
    lines.push_back(
        "memory that libraries keep for themselves: Gloo's buffers and sockets, oneDNN's");
    lines.push_back(
        "  primitive cache and packed copies, the C++ heap, code and stacks of the process");
    lines.push_back(
        "slots of groups in shared memory: up to 1 MiB a member, and 256 KiB for each direction");
    lines.push_back("  of transfers between two");
    lines.push_back("page cache of data and checkpoint files");
  } else {
    lines.push_back(
        "what libraries keep on the device beyond the reserve (context, NCCL's channels)");
    lines.push_back("page cache and pinned staging of data and checkpoint files");
  }
  lines.push_back(
      "time: launch overhead, cache effects, contention between streams or jobs, stragglers,");
  lines.push_back(
      "  reading data, writing checkpoints; rates are catalogue peaks, not measurements");
  return lines;
}

std::string JsonText(const nlohmann::ordered_json& json, int indent) {
  return json.dump(indent, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

std::string PlaceOfRank(const Plan& plan, int64_t rank) {
  const int64_t per_node = std::max<int64_t>(1, plan.ranks_per_node);
  return absl::StrCat("node ", rank / per_node, " device ", rank % per_node);
}

std::string MembersText(const Plan& plan, const std::vector<int64_t>& ranks, size_t most) {
  const int64_t per_node = std::max<int64_t>(1, plan.ranks_per_node);
  std::vector<std::string> ranges;
  size_t shown = 0;
  for (size_t i = 0; i < ranks.size();) {
    size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1 &&
           ranks[last + 1] / per_node == ranks[i] / per_node) {
      ++last;
    }
    if (ranges.size() == most) break;
    std::string range = absl::StrCat(ranks[i] / per_node, ":", ranks[i] % per_node);
    if (last > i) absl::StrAppend(&range, "-", ranks[last] % per_node);
    ranges.push_back(range);
    shown = last + 1;
    i = last + 1;
  }
  std::string text = absl::StrJoin(ranges, " ");
  if (shown < ranks.size()) {
    absl::StrAppend(&text, " ... and ", Counted(ranks.size() - shown, "more rank"));
  }
  return text;
}

const RankClass& ClassOfRank(const Plan& plan, int64_t rank) {
  return plan.classes[plan.mesh.CoordinatesOf(rank)[static_cast<int>(Axis::kPp)]];
}

}  // namespace planc
