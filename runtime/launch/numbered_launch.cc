#include "runtime/launch/numbered_launch.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/substitute.h"
#include "runtime/launch/launch_reader.h"
#include "schemas/status.h"

namespace planc {
namespace {

// Meeting points on one machine: ports from here on, one per start. Those of Slurm jobs lie below.
constexpr uint64_t kFirstPort = 32000;
constexpr uint64_t kPorts = 700;

struct Launcher {
  LaunchSource source;
  std::string name;
  std::string rank;
  std::string size;
  std::string local_rank;
  std::string local_size;
  std::string job;
  std::string command;
  std::string variables;
};

const std::vector<Launcher>& Launchers() {
  static const auto* const launchers = new std::vector<Launcher>{
#define PLANC_LAUNCHER(source, name, rank, size, local_rank, local_size, job, command, variables) \
  {LaunchSource::source, name, rank, size, local_rank, local_size, job, command, variables},
#include "runtime/launch/launchers.def"
#undef PLANC_LAUNCHER
  };
  return *launchers;
}

// Variables that number processes without telling how many there are, or which are on one machine.
constexpr const char* kRankAlone[] = {"PMIX_RANK", "PMI_RANK", "ALPS_APP_PE", "MP_CHILD"};

// FNV-1a: the same in every rank, whatever its library.
uint64_t Hash(const std::string& text) {
  uint64_t hash = 14695981039346656037u;
  for (const char letter : text)
    hash = (hash ^ static_cast<unsigned char>(letter)) * 1099511628211u;
  return hash;
}

std::string ReadAll(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// The fields of /proc/PROCESS/stat from the third on: the second, a name, may hold blanks.
std::vector<std::string> StatFields(int64_t process) {
  const std::string text = ReadAll(absl::StrCat("/proc/", process, "/stat"));
  const size_t name_end = text.rfind(") ");
  if (name_end == std::string::npos) return {};
  return absl::StrSplit(text.substr(name_end + 2), ' ');
}

absl::Status MeetingPointMissing(const Launcher& launcher, const LaunchConfig& launch) {
  const int64_t local = std::max<int64_t>(launch.local_world_size, 1);
  return absl::FailedPreconditionError(absl::StrCat(
      launcher.name, " started ", launch.world_size, " ranks, ", launch.local_world_size,
      " of them on this machine, and does not tell where rank 0 is: name its machine and a free ",
      "port\n  ",
      NumberedCommand(launcher.source, (launch.world_size + local - 1) / local, local, true)));
}

absl::StatusOr<LaunchConfig> Read(const Launcher& launcher, const Environment& environment) {
  LaunchReader reader(environment);
  LaunchConfig launch;
  launch.source = launcher.source;
  launch.rank = reader.Integer(launcher.rank);
  launch.world_size = reader.Integer(launcher.size);
  launch.local_rank = reader.Integer(launcher.local_rank);
  if (!launcher.local_size.empty()) {
    launch.local_world_size = reader.Integer(launcher.local_size);
  } else {
    const int64_t nodes = std::max<int64_t>(1, reader.IntegerOr("FLUX_JOB_NNODES", 1));
    launch.local_world_size = (launch.world_size + nodes - 1) / nodes;
  }
  PLANC_RETURN_IF_ERROR(reader.status());
  const bool known = !launcher.job.empty() && reader.Has(launcher.job);
  launch.job = absl::StrCat(launcher.name, " ",
                            known ? reader.Text(launcher.job) : LauncherIdentity(launcher.rank));
  launch.store_port = static_cast<int>(reader.IntegerOr(
      "MASTER_PORT", static_cast<int64_t>(kFirstPort + Hash(launch.job) % kPorts)));
  if (launch.local_world_size < launch.world_size) {
    if (!reader.Has("MASTER_ADDR") || !reader.Has("MASTER_PORT")) {
      return MeetingPointMissing(launcher, launch);
    }
    launch.store_host = reader.Text("MASTER_ADDR");
    // An identity of this machine's launcher is not that of the others.
    if (!known) launch.job = absl::StrCat(launcher.name, " ", launch.store_port);
  }
  PLANC_RETURN_IF_ERROR(reader.status());
  return launch;
}

}  // namespace

absl::StatusOr<std::optional<LaunchConfig>> ReadNumberedLaunch(const Environment& environment) {
  for (const Launcher& launcher : Launchers()) {
    if (!environment(launcher.local_rank).has_value()) continue;
    PLANC_ASSIGN_OR_RETURN(LaunchConfig launch, Read(launcher, environment));
    return std::optional<LaunchConfig>(std::move(launch));
  }
  return std::optional<LaunchConfig>();
}

absl::Status RefuseUnknownLauncher(const Environment& environment) {
  std::vector<std::string> names(std::begin(kRankAlone), std::end(kRankAlone));
  for (const Launcher& launcher : Launchers()) names.push_back(launcher.rank);
  for (const std::string& name : names) {
    if (!environment(name).has_value()) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        name, " is set: a launcher started this process as one of several, but does not tell ",
        "planc how many there are and where. Use\n  ",
        NumberedCommand(LaunchSource::kOpenMpi, 1, 4, false),
        "\nor set RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR and MASTER_PORT in ",
        "every process"));
  }
  return absl::OkStatus();
}

std::string NumberedCommand(LaunchSource source, int64_t nodes, int64_t ranks_per_node,
                            bool variables) {
  for (const Launcher& launcher : Launchers()) {
    if (launcher.source != source) continue;
    return absl::StrCat(
        absl::Substitute(launcher.command, nodes * ranks_per_node, ranks_per_node, nodes), " ",
        variables ? launcher.variables + " " : "", "planc run ...");
  }
  return "";
}

std::string LauncherIdentity(const std::string& variable) {
  int64_t process = getppid();
  while (process > 1) {
    const std::string variables = ReadAll(absl::StrCat("/proc/", process, "/environ"));
    const std::string assignment = variable + "=";
    if (!absl::StartsWith(variables, assignment) &&
        !absl::StrContains(variables, std::string(1, '\0') + assignment)) {
      break;
    }
    // A shell between the launcher and this process.
    constexpr size_t kParent = 1;
    const std::vector<std::string> fields = StatFields(process);
    if (fields.size() <= kParent || !absl::SimpleAtoi(fields[kParent], &process)) break;
  }
  constexpr size_t kStartTime = 19;
  const std::vector<std::string> fields = StatFields(process);
  return absl::StrCat(process, ".", fields.size() > kStartTime ? fields[kStartTime] : "");
}

}  // namespace planc
