#include "runtime/launch/placement.h"

#include <map>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "runtime/launch/numbered_launch.h"
#include "schemas/counted.h"

namespace planc {
namespace {

// Errors show this many machines, and this many ranks of each.
constexpr size_t kMachinesShown = 8;
constexpr size_t kRanksShown = 16;

struct Machine {
  std::string name;  // for people
  std::vector<int64_t> ranks;
};

// Two texts are equal where the ranks are on one machine.
std::string KeyOf(const RankPlace& place) { return absl::StrCat(place.host, "\n", place.machine); }

// The host, with the address where another machine has the same name.
std::string NameOf(const RankPlace& place, const std::vector<RankPlace>& places) {
  for (const RankPlace& other : places) {
    if (other.host == place.host && KeyOf(other) != KeyOf(place)) {
      return absl::StrCat(place.host, " (", place.address, ")");
    }
  }
  return place.host;
}

// The machines in the order of their lowest rank.
std::vector<Machine> MachinesOf(const std::vector<RankPlace>& places) {
  std::vector<Machine> machines;
  std::map<std::string, size_t> index;
  for (size_t rank = 0; rank < places.size(); ++rank) {
    const auto [known, added] = index.emplace(KeyOf(places[rank]), machines.size());
    if (added) machines.push_back({NameOf(places[rank], places), {}});
    machines[known->second].ranks.push_back(static_cast<int64_t>(rank));
  }
  return machines;
}

// "n1 has ranks 0, 2; n2 has ranks 1, 3".
std::string MachineList(const std::vector<RankPlace>& places) {
  std::vector<std::string> lines;
  for (const Machine& machine : MachinesOf(places)) {
    if (lines.size() == kMachinesShown) {
      lines.push_back("...");
      break;
    }
    std::vector<int64_t> ranks = machine.ranks;
    if (ranks.size() > kRanksShown) ranks.resize(kRanksShown);
    lines.push_back(absl::StrCat(machine.name, ranks.size() == 1 ? " has rank " : " has ranks ",
                                 absl::StrJoin(ranks, ", "),
                                 ranks.size() < machine.ranks.size() ? ", ..." : ""));
  }
  return absl::StrJoin(lines, "; ");
}

}  // namespace

std::string PlaceText(const RankPlace& place) {
  return absl::StrCat(place.local_rank, " ", place.address, " ", place.host, "\n", place.machine);
}

absl::StatusOr<RankPlace> ParsePlace(const std::string& text) {
  const std::vector<std::string> fields = absl::StrSplit(text, absl::MaxSplits(' ', 2));
  RankPlace place;
  if (fields.size() != 3 || !absl::SimpleAtoi(fields[0], &place.local_rank)) {
    return absl::InvalidArgumentError(absl::StrCat("malformed place of a rank \"", text, "\""));
  }
  place.address = fields[1];
  const std::vector<std::string> names = absl::StrSplit(fields[2], absl::MaxSplits('\n', 1));
  place.host = names[0];
  if (names.size() > 1) place.machine = names[1];
  return place;
}

std::string StartCommand(LaunchSource source, int64_t nodes, int64_t ranks_per_node) {
  const std::string command = NumberedCommand(source, nodes, ranks_per_node, nodes > 1);
  if (!command.empty()) return command;
  if (source == LaunchSource::kSlurm) {
    return absl::StrCat("srun -K1 --nodes=", nodes, " --ntasks-per-node=", ranks_per_node,
                        " --distribution=block:block planc run ...");
  }
  return absl::StrCat("torchrun --nnodes=", nodes, " --nproc-per-node=", ranks_per_node,
                      " --no-python planc run ...");
}

absl::Status CheckPlacement(const std::vector<RankPlace>& places, int64_t ranks_per_node,
                            LaunchSource source) {
  const auto ranks = static_cast<int64_t>(places.size());
  std::map<std::string, int64_t> first_rank;  // of each machine
  std::string problem;
  for (int64_t rank = 0; rank < ranks && problem.empty(); ++rank) {
    const RankPlace& place = places[rank];
    const int64_t first = rank - rank % ranks_per_node;
    const int64_t known = first_rank.emplace(KeyOf(place), rank).first->second;
    if (known != first) {
      problem =
          absl::StrCat("rank ", rank, " runs on ", NameOf(place, places), " with rank ", known);
      if (rank != first) absl::StrAppend(&problem, ", not with rank ", first);
      if (known == rank) {
        problem = absl::StrCat("rank ", rank, " runs on ", NameOf(place, places), ", not on ",
                               NameOf(places[first], places), " with rank ", first);
      }
    } else if (place.local_rank != rank % ranks_per_node) {
      problem = absl::StrCat("rank ", rank, " is local rank ", place.local_rank, " of ", place.host,
                             ", not ", rank % ranks_per_node);
    }
  }
  if (problem.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "the mesh has ", ranks_per_node, " neighbouring ranks on each of ",
      Counted(ranks / ranks_per_node, "machine"), ", but ", problem, " (", MachineList(places),
      "): start it with\n  ", StartCommand(source, ranks / ranks_per_node, ranks_per_node)));
}

std::string NetworkAddress(const std::vector<RankPlace>& places) {
  for (const RankPlace& place : places) {
    if (!IsLoopbackAddress(place.address)) return place.address;
  }
  return "";
}

bool IsLoopbackAddress(const std::string& address) {
  return absl::StartsWith(address, "127.") || address == "::1" ||
         absl::StartsWith(address, "::ffff:127.");
}

}  // namespace planc
