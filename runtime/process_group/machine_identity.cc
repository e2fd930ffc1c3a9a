#include "runtime/process_group/machine_identity.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace planc {
namespace {

std::string BootId() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(file, id);
  return id;
}

std::string Namespace(const std::string& kind) {
  char target[64] = {};
  const std::string path = absl::StrCat("/proc/self/ns/", kind);
  return readlink(path.c_str(), target, sizeof(target) - 1) > 0 ? target : "";
}

}  // namespace

std::string MachineIdentity(const std::string& host) {
  const std::vector<std::string> facts = {BootId(), Namespace("pid"), Namespace("net")};
  if (std::count(facts.begin(), facts.end(), "") > 0) return "";
  return absl::StrCat(host, " ", absl::StrJoin(facts, " "));
}

std::string PlacementIdentity() {
  const std::string boot = BootId();
  const std::string network = Namespace("net");
  return boot.empty() || network.empty() ? "" : absl::StrCat(boot, " ", network);
}

std::string MachinesText(const std::vector<std::string>& identities) {
  std::vector<int64_t> machines;
  for (size_t rank = 0; rank < identities.size(); ++rank) {
    const auto first = identities[rank].empty()
                           ? identities.begin() + static_cast<int64_t>(rank)
                           : std::find(identities.begin(), identities.end(), identities[rank]);
    machines.push_back(first - identities.begin());
  }
  return absl::StrJoin(machines, " ");
}

bool OnOneMachine(const std::string& machines, const std::vector<int64_t>& ranks) {
  const std::vector<std::string> of_rank = absl::StrSplit(machines, ' ');
  return std::all_of(ranks.begin(), ranks.end(), [&](int64_t rank) {
    return rank < static_cast<int64_t>(of_rank.size()) && of_rank[rank] == of_rank[ranks.front()];
  });
}

}  // namespace planc
