// planc where: which ranks hold which shard of a parameter, and who reduces its gradient.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "nlohmann/json.hpp"
#include "planc/command/shards.h"
#include "planc/commands.h"
#include "planc/flags.h"
#include "planc/load_plan.h"
#include "planc/show/show.h"
#include "planc/text.h"
#include "schemas/counted.h"

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
  if (shards.empty()) return "  none of these ranks holds a part of it\n";
  std::string text = Wrap(table.Text(2), 8);
  if (shards.size() > kRanksShown) {
    absl::StrAppend(&text, "  ... and ", Counted(shards.size() - kRanksShown, "more rank"), "\n");
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
        << ", " << Counted(GroupSize(plan.mesh, group), "rank");
    if (!shards.empty()) {
      const std::vector<int64_t> members = GroupMembers(plan.mesh, group, shards[0].rank);
      out << ", for rank " << shards[0].rank << ": " << MembersText(plan, members, 4);
    }
    out << "\n";
  }
  if (number == 0) out << "    no reduction: one rank sees all of it\n";
}

// One row for each parameter, layers folded: the name is a pattern that finds them.
TextTable NamesTable(const Plan& plan) {
  TextTable table({"parameter", "layers", ">shape", "over tp", "unit"});
  for (const Parameter& parameter : plan.params) {
    const Unit& unit = plan.units[parameter.unit];
    const bool whole = parameter.tp_dim < 0 || plan.mesh[Axis::kTp] == 1;
    table.Add({absl::StrReplaceAll(parameter.name, {{"{layer}", "*"}}),
               unit.per_layer ? absl::StrCat("0-", plan.job.model().layers() - 1) : "-",
               absl::StrCat("[", absl::StrJoin(parameter.shape, ", "), "]"),
               whole ? "whole" : absl::StrCat("dimension ", parameter.tp_dim), unit.name});
  }
  return table;
}

int PrintNames(const Plan& plan, const std::string& format, std::ostream& out) {
  if (format == "text") {
    out << NamesTable(plan).Text(0)
        << "\n`planc where JOB PARAMETER` shows who holds one, or all that a pattern with * "
           "finds\n";
    return kExitOk;
  }
  Json json = {{"format", "planc-where"}, {"version", 1}, {"names", Json::array()}};
  for (const NamedParameter& named : AllParameters(plan)) {
    json["names"].push_back({{"name", named.name}, {"shape", plan.params[named.index].shape}});
  }
  out << JsonText(json, 2);
  return kExitOk;
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

// The ranks that were asked for, both included.
struct RankRange {
  int64_t first = 0;
  int64_t last = 0;
};

// --rank=N or --ranks=A-B; without both all ranks of the plan.
absl::StatusOr<RankRange> ReadRanks(const Plan& plan, const Flags& flags) {
  RankRange range{0, plan.mesh.WorldSize() - 1};
  if (!flags.Has("--rank") && !flags.Has("--ranks")) return range;
  if (flags.Has("--rank") && flags.Has("--ranks")) {
    return absl::InvalidArgumentError("--rank and --ranks exclude each other");
  }
  const std::string name = flags.Has("--rank") ? "--rank" : "--ranks";
  const std::string text = flags.Has("--rank") ? flags.Get("--rank") : flags.Get("--ranks");
  const size_t dash = text.find('-', 1);
  const std::string second =
      flags.Has("--ranks") && dash != std::string::npos ? text.substr(dash + 1) : text;
  const std::string first = second == text ? text : text.substr(0, dash);
  int64_t last = 0;
  if (!absl::SimpleAtoi(first, &range.first) || !absl::SimpleAtoi(second, &last) ||
      range.first < 0 || last < range.first) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, " `", text, "` is not ",
                     name == "--rank" ? "a rank number" : "a range, such as 0-7"));
  }
  if (last > range.last) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, " ", text, " does not exist: the plan has ranks 0 to ", range.last));
  }
  range.last = last;
  return range;
}

// The shards of the parameter on these ranks.
std::vector<ParameterShard> ShardsOn(const Plan& plan, const NamedParameter& named,
                                     const RankRange& ranks) {
  std::vector<ParameterShard> shards = ShardsOf(plan, named);
  shards.erase(std::remove_if(shards.begin(), shards.end(),
                              [&](const ParameterShard& shard) {
                                return shard.rank < ranks.first || shard.rank > ranks.last;
                              }),
               shards.end());
  return shards;
}

}  // namespace

int RunWhere(const std::vector<std::string>& args, std::ostream& out, std::ostream& err) {
  const absl::StatusOr<Flags> flags = ParseFlags("where", args);
  if (!flags.ok()) return UsageError("where", flags.status(), err);
  const std::vector<std::string>& words = flags->positional;
  if (words.empty() || words.size() > 2) {
    return UsageError("where", "a job and at most one parameter or pattern are needed", err);
  }
  const std::string format = flags->Get("--format");
  LoadedPlan loaded;
  const int code = LoadPlan("planc where", words[0], flags->All("--set"), err, &loaded);
  if (code != kExitOk) return code;
  const Plan& plan = loaded.plan;
  const absl::StatusOr<RankRange> ranks = ReadRanks(plan, *flags);
  if (!ranks.ok()) return UsageError("where", ranks.status(), err);
  if (words.size() == 1) return PrintNames(plan, format, out);
  const absl::StatusOr<std::vector<NamedParameter>> found = FindParameters(plan, words[1]);
  if (!found.ok()) {
    err << Wrap(absl::StrCat("planc where: ", std::string(found.status().message())), 2) << "\n"
        << "`planc where " << words[0] << "` lists all of them\n";
    return kExitJobError;
  }
  Json all = Json::array();
  for (const NamedParameter& named : *found) {
    const std::vector<ParameterShard> shards = ShardsOn(plan, named, *ranks);
    if (format == "json") {
      all.push_back(JsonOf(plan, named, shards));
    } else {
      if (&named != &found->front()) out << "\n";
      PrintText(plan, named, shards, out);
    }
  }
  // One object for a name, as programs know it; a list for a pattern.
  const bool one = found->size() == 1 && words[1].find_first_of("*?[") == std::string::npos;
  if (format == "json") out << JsonText(one ? all[0] : all, 2);
  return kExitOk;
}

}  // namespace planc
