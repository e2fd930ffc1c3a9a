// planc where: which ranks hold which shard of a parameter, and who reduces its gradient.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "nlohmann/json.hpp"
#include "planc/commands.h"
#include "planc/flags.h"
#include "planc/load_plan.h"
#include "planc/shards.h"
#include "planc/show/show.h"
#include "planc/text.h"

namespace planc {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kRanksShown = 64;

std::string BoxText(const ParameterShard& shard) {
  std::vector<std::string> sides;
  for (size_t i = 0; i < shard.box_begin.size(); ++i) {
    sides.push_back(absl::StrCat(shard.box_begin[i], ":", shard.box_end[i]));
  }
  return absl::StrCat("[", absl::StrJoin(sides, ", "), "]");
}

std::string LocationText(const Location& location) {
  if (location.bytes == 0) return "-";
  return absl::StrCat(MemoryKindName(location.arena), "+", location.offset);
}

std::string ElementsText(const ParameterShard& shard) {
  if (shard.master_begin == shard.master_end) return "none";
  return absl::StrCat(shard.master_begin, ":", shard.master_end);
}

std::string TableText(const Plan& plan, const std::vector<ParameterShard>& shards) {
  TextTable table({">rank", "place", "box", ">master elements", ">master at", ">compute at"});
  for (size_t i = 0; i < shards.size() && i < kRanksShown; ++i) {
    const ParameterShard& shard = shards[i];
    table.Add({absl::StrCat(shard.rank), PlaceOfRank(plan, shard.rank), BoxText(shard),
               ElementsText(shard), LocationText(shard.master), LocationText(shard.compute)});
  }
  std::string text = Wrap(table.Text(2), 8);
  if (shards.size() > kRanksShown) {
    absl::StrAppend(&text, "  ... and ", shards.size() - kRanksShown, " more ranks\n");
  }
  return text;
}

void PrintText(const Plan& plan, const NamedParameter& named,
               const std::vector<ParameterShard>& shards, std::ostream& out) {
  const Parameter& parameter = plan.params[named.index];
  const Unit& unit = plan.units[parameter.unit];
  out << named.name << "\n"
      << "  shape [" << absl::StrJoin(parameter.shape, ", ") << "], "
      << (parameter.tp_dim < 0 || plan.mesh[Axis::kTp] == 1
              ? "whole on each tp rank"
              : absl::StrCat("dimension ", parameter.tp_dim, " split over tp"))
      << "\n  in unit " << unit.name << " at element " << parameter.unit_offset << " of "
      << unit.elements << " on each tp rank\n\n"
      << TableText(plan, shards)
      << "\n  box: part of the whole tensor; master elements: of that part, flattened, with its\n"
         "  moments; at: arena and bytes from its start\n";
  if (!shards.empty() && shards[0].compute.buffer.empty()) {
    out << "  compute weights are gathered for each use (zero 3)\n";
  }
  out << "\n  gradient\n";
  int number = 0;
  for (const GradientReduction& reduction : ReductionsOf(plan, named)) {
    const GroupKind& group = plan.groups[reduction.group];
    out << "    " << ++number << ". " << TraitsOf(reduction.opcode).text << " over " << group.name
        << ", " << GroupSize(plan.mesh, group) << " ranks";
    if (!shards.empty()) {
      const std::vector<int64_t> members = GroupMembers(plan.mesh, group, shards[0].rank);
      out << ", for rank " << shards[0].rank << ": " << MembersText(plan, members, 4);
    }
    out << "\n";
  }
  if (number == 0) out << "    no reduction: one rank sees all of it\n";
}

Json LocationJson(const Location& location) {
  if (location.bytes == 0) return nullptr;
  return {{"buffer", location.buffer},
          {"arena", MemoryKindName(location.arena)},
          {"offset", location.offset},
          {"bytes", location.bytes}};
}

Json JsonOf(const Plan& plan, const NamedParameter& named,
            const std::vector<ParameterShard>& shards) {
  const Parameter& parameter = plan.params[named.index];
  Json json = {{"format", "planc-where"}, {"version", 1}, {"parameter", named.name}};
  json["shape"] = parameter.shape;
  json["unit"] = plan.units[parameter.unit].name;
  json["shards"] = Json::array();
  for (const ParameterShard& shard : shards) {
    json["shards"].push_back({{"rank", shard.rank},
                              {"box_begin", shard.box_begin},
                              {"box_end", shard.box_end},
                              {"master_elements", {shard.master_begin, shard.master_end}},
                              {"master", LocationJson(shard.master)},
                              {"compute", LocationJson(shard.compute)}});
  }
  json["gradient"] = Json::array();
  for (const GradientReduction& reduction : ReductionsOf(plan, named)) {
    json["gradient"].push_back({{"opcode", TraitsOf(reduction.opcode).text},
                                {"group", plan.groups[reduction.group].name}});
  }
  return json;
}

}  // namespace

int RunWhere(const std::vector<std::string>& args, std::ostream& out, std::ostream& err) {
  const absl::StatusOr<Flags> flags = ParseFlags("where", args);
  if (!flags.ok()) return UsageError("where", flags.status(), err);
  if (flags->positional.size() != 2) {
    return UsageError("where", "a job and a parameter are needed", err);
  }
  LoadedPlan loaded;
  const int code = LoadPlan("planc where", flags->positional[0], flags->All("--set"), err, &loaded);
  if (code != kExitOk) return code;
  const absl::StatusOr<NamedParameter> named = FindParameter(loaded.plan, flags->positional[1]);
  if (!named.ok()) return UsageError("where", named.status(), err);
  const std::vector<ParameterShard> shards = ShardsOf(loaded.plan, *named);
  if (flags->Get("--format") == "json") {
    out << JsonText(JsonOf(loaded.plan, *named, shards), 2);
  } else {
    PrintText(loaded.plan, *named, shards, out);
  }
  return kExitOk;
}

}  // namespace planc
