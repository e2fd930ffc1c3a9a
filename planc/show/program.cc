#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "planc/show/show.h"
#include "planc/text.h"
#include "schemas/plan_text.h"

namespace planc {
namespace {

// Blocks that any program of the class calls, in plan order.
std::set<int> UsedBlocks(const RankClass& rank_class) {
  std::set<int> used;
  for (const Program& program : rank_class.programs) {
    for (const Repeat& repeat : program.steps) {
      for (const Call& call : repeat.calls) used.insert(call.block);
    }
  }
  return used;
}

}  // namespace

ShowSection ShowProgram(const ShowInput& input) {
  const Plan& plan = input.plan;
  ShowSection section{"program", "", nlohmann::ordered_json::object()};
  std::string text;
  if (input.rank < 0) {
    text = PlanText(plan);
  } else {
    const RankClass& rank_class = ClassOfRank(plan, input.rank);
    absl::StrAppend(&text, "rank ", input.rank, " on ", PlaceOfRank(plan, input.rank), "\n\n");
    for (int block : UsedBlocks(rank_class)) {
      if (block < 0 || static_cast<size_t>(block) >= plan.blocks.size()) continue;
      absl::StrAppend(&text, BlockText(plan, plan.blocks[block]), "\n");
    }
    absl::StrAppend(&text, ClassText(plan, rank_class));
  }
  section.text = Wrap(text, 6);
  section.data = {{"text", text}};
  return section;
}

}  // namespace planc
