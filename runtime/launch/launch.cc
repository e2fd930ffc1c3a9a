#include "runtime/launch/launch.h"

#include <omp.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/launch/hostlist.h"
#include "runtime/launch/launch_reader.h"
#include "runtime/launch/numbered_launch.h"
#include "runtime/launch/placement.h"
#include "runtime/launch/terminal.h"
#include "schemas/status.h"

namespace planc {
namespace {

// Ports of Slurm jobs: from here on, one per job step, so that steps that share a node differ.
constexpr int64_t kFirstSlurmPort = 20000;
constexpr int64_t kSlurmPorts = 12000;

constexpr size_t kShortestSecret = 16;

LaunchConfig ReadLocal(LaunchReader* reader) {
  LaunchConfig launch;
  launch.source = LaunchSource::kLocal;
  launch.rank = launch.local_rank = reader->Integer("PLANC_RANK");
  launch.world_size = launch.local_world_size = reader->Integer("PLANC_WORLD_SIZE");
  launch.job = reader->Text("PLANC_JOB");
  launch.restart = static_cast<int>(reader->Integer("PLANC_RESTART"));
  launch.store_port = static_cast<int>(reader->IntegerOr("PLANC_STORE_PORT", 0));
  launch.store_channel = static_cast<int>(reader->IntegerOr("PLANC_STORE_CHANNEL", -1));
  if (launch.rank == 0) {
    launch.store_socket = static_cast<int>(reader->Integer("PLANC_STORE_SOCKET"));
  }
  launch.step_page = static_cast<int>(reader->IntegerOr("PLANC_STEP_PAGE", -1));
  launch.address = launch.store_host;
  if (reader->Has("PLANC_RUN")) launch.run = reader->Text("PLANC_RUN");
  launch.terminal = reader->Integer("PLANC_TERMINAL") != 0;
  return launch;
}

LaunchConfig ReadTorchrun(LaunchReader* reader) {
  LaunchConfig launch;
  launch.source = LaunchSource::kTorchrun;
  launch.rank = reader->Integer("RANK");
  launch.world_size = reader->Integer("WORLD_SIZE");
  launch.local_rank = reader->Integer("LOCAL_RANK");
  launch.local_world_size = reader->Integer("LOCAL_WORLD_SIZE");
  launch.store_host = reader->Text("MASTER_ADDR");
  launch.store_port = static_cast<int>(reader->Integer("MASTER_PORT"));
  // The agent then serves its own store on MASTER_PORT.
  if (reader->Has("TORCHELASTIC_USE_AGENT_STORE") &&
      reader->Text("TORCHELASTIC_USE_AGENT_STORE") == "True") {
    ++launch.store_port;
  }
  launch.restart = static_cast<int>(reader->IntegerOr("TORCHELASTIC_RESTART_COUNT", 0));
  launch.job =
      reader->Has("TORCHELASTIC_RUN_ID") ? reader->Text("TORCHELASTIC_RUN_ID") : "torchrun";
  return launch;
}

// Where the ranks of a Slurm step meet: on the first node of the step, where rank 0 is, unless
// MASTER_ADDR and MASTER_PORT say otherwise.
absl::Status PlaceSlurmStore(LaunchReader* reader, int64_t job, int64_t step,
                             LaunchConfig* launch) {
  PLANC_ASSIGN_OR_RETURN(const std::vector<std::string> nodes,
                         ExpandHostlist(reader->Text("SLURM_STEP_NODELIST")));
  if (nodes.empty()) return absl::InvalidArgumentError("SLURM_STEP_NODELIST is empty");
  launch->store_host = nodes.size() == 1 ? "127.0.0.1" : nodes.front();
  if (reader->Has("MASTER_ADDR")) launch->store_host = reader->Text("MASTER_ADDR");
  launch->store_port = static_cast<int>(
      reader->IntegerOr("MASTER_PORT", kFirstSlurmPort + (job * 7 + step) % kSlurmPorts));
  return absl::OkStatus();
}

// How many tasks run on this node of the step.
absl::StatusOr<int64_t> TasksOnThisNode(LaunchReader* reader, int64_t rank) {
  PLANC_ASSIGN_OR_RETURN(const std::vector<int64_t> tasks,
                         ExpandTaskCounts(reader->Text("SLURM_STEP_TASKS_PER_NODE")));
  const int64_t node = reader->Integer("SLURM_NODEID");
  PLANC_RETURN_IF_ERROR(reader->status());
  if (node >= static_cast<int64_t>(tasks.size())) {
    return absl::InvalidArgumentError(
        absl::StrCat("launch variable SLURM_NODEID=", node, " does not fit ",
                     "SLURM_STEP_TASKS_PER_NODE=", reader->Text("SLURM_STEP_TASKS_PER_NODE")));
  }
  // The others look for rank 0 on the first node.
  if (rank == 0 && node != 0) {
    return absl::FailedPreconditionError(absl::StrCat("Slurm placed task 0 on node ", node,
                                                      " of the step instead of node 0: use ",
                                                      "srun --distribution=block:block"));
  }
  return tasks[node];
}

absl::StatusOr<LaunchConfig> ReadSlurm(LaunchReader* reader) {
  if (reader->Has("SLURM_HET_SIZE")) {
    return absl::FailedPreconditionError(
        "a heterogeneous Slurm job has several node lists, and planc needs one: submit a job with "
        "equal nodes");
  }
  LaunchConfig launch;
  launch.source = LaunchSource::kSlurm;
  launch.rank = reader->Integer("SLURM_PROCID");
  launch.world_size =
      reader->IntegerOr("SLURM_STEP_NUM_TASKS", reader->IntegerOr("SLURM_NTASKS", 1));
  launch.local_rank = reader->Integer("SLURM_LOCALID");
  const int64_t job = reader->Integer("SLURM_JOB_ID");
  const int64_t step = reader->Integer("SLURM_STEP_ID");
  launch.job = absl::StrCat(job, ".", step);
  launch.restart = static_cast<int>(reader->IntegerOr("SLURM_RESTART_COUNT", 0));
  PLANC_ASSIGN_OR_RETURN(launch.local_world_size, TasksOnThisNode(reader, launch.rank));
  PLANC_RETURN_IF_ERROR(PlaceSlurmStore(reader, job, step, &launch));
  launch.threads = static_cast<int>(reader->IntegerOr("SLURM_CPUS_PER_TASK", 0));
  return launch;
}

// A batch script has the variables of task 0 of the job, but the other tasks do not exist.
absl::Status WithoutSrun(LaunchReader* reader) {
  const int64_t tasks = reader->Integer("SLURM_NTASKS");
  const int64_t nodes = std::max<int64_t>(1, reader->IntegerOr("SLURM_JOB_NUM_NODES", 1));
  PLANC_RETURN_IF_ERROR(reader->status());
  return absl::FailedPreconditionError(
      absl::StrCat("this Slurm job has ", tasks, " tasks, but this process is none of them: start ",
                   "planc with srun\n  ",
                   StartCommand(LaunchSource::kSlurm, nodes, (tasks + nodes - 1) / nodes)));
}

// Several Slurm daemons on one machine are several machines, each with a name of its own.
std::string HostName(const Environment& environment) {
  const std::optional<std::string> node = environment("SLURMD_NODENAME");
  if (node.has_value() && !node->empty()) return *node;
  char name[256] = "";
  gethostname(name, sizeof(name) - 1);
  return name;
}

// The secret of planc's own launcher, or what the user has given to all ranks.
absl::Status ReadSecret(LaunchReader* reader, LaunchConfig* launch) {
  if (!reader->Has("PLANC_SECRET")) return absl::OkStatus();
  launch->secret = reader->Text("PLANC_SECRET");
  if (launch->secret.size() >= kShortestSecret) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("PLANC_SECRET has ", launch->secret.size(),
                                                 " characters: whoever guesses it ",
                                                 "can join the job, so it needs ", kShortestSecret,
                                                 " or more, e.g. from\n  openssl rand -hex 32"));
}

absl::Status CheckRanks(const LaunchConfig& launch) {
  if (launch.rank < launch.world_size && launch.local_rank < launch.local_world_size &&
      launch.local_world_size <= launch.world_size && launch.store_port <= 65535) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(LaunchSourceName(launch.source), " variables do not fit together: rank ",
                   launch.rank, " of ", launch.world_size, ", local rank ", launch.local_rank,
                   " of ", launch.local_world_size, ", port ", launch.store_port));
}

}  // namespace

const char* LaunchSourceName(LaunchSource source) {
  switch (source) {
    case LaunchSource::kAlone:
      return "alone";
    case LaunchSource::kLocal:
      return "local";
    case LaunchSource::kTorchrun:
      return "torchrun";
    case LaunchSource::kSlurm:
      return "slurm";
#define PLANC_LAUNCHER(source, name, ...) \
  case LaunchSource::source:              \
    return name;
#include "runtime/launch/launchers.def"
#undef PLANC_LAUNCHER
  }
  return "?";
}

Environment ProcessEnvironment() {
  return [](const std::string& name) -> std::optional<std::string> {
    const char* const value = std::getenv(name.c_str());
    if (value == nullptr) return std::nullopt;
    return std::string(value);
  };
}

absl::StatusOr<LaunchConfig> DetectLaunch(const Environment& environment, int cores) {
  LaunchReader reader(environment);
  LaunchConfig launch;
  if (reader.Has("PLANC_RANK")) {
    launch = ReadLocal(&reader);
  } else if (reader.Has("RANK") && reader.Has("WORLD_SIZE")) {
    launch = ReadTorchrun(&reader);
  } else {
    // Before Slurm, whose variables mpirun passes on from the step of its daemons.
    PLANC_ASSIGN_OR_RETURN(std::optional<LaunchConfig> numbered, ReadNumberedLaunch(environment));
    if (numbered.has_value()) {
      launch = *std::move(numbered);
    } else if (reader.Has("SLURM_STEP_ID") && reader.Has("SLURM_PROCID")) {
      PLANC_ASSIGN_OR_RETURN(launch, ReadSlurm(&reader));
    } else if (reader.Has("SLURM_JOB_ID") && reader.IntegerOr("SLURM_NTASKS", 1) > 1) {
      return WithoutSrun(&reader);
    } else {
      PLANC_RETURN_IF_ERROR(RefuseUnknownLauncher(environment));
    }
  }
  PLANC_RETURN_IF_ERROR(reader.status());
  PLANC_RETURN_IF_ERROR(CheckRanks(launch));
  PLANC_RETURN_IF_ERROR(ReadSecret(&reader, &launch));
  launch.host = HostName(environment);
  if (launch.threads <= 0 || launch.source != LaunchSource::kSlurm) {
    launch.threads = std::max(1, static_cast<int>(cores / launch.local_world_size));
  }
  return launch;
}

absl::StatusOr<LaunchConfig> DetectLaunch() {
  const Environment environment = ProcessEnvironment();
  PLANC_ASSIGN_OR_RETURN(LaunchConfig launch, DetectLaunch(environment, AvailableCores()));
  if (launch.source == LaunchSource::kAlone) {
    launch.terminal = isatty(STDOUT_FILENO) == 1 && TerminalRewrites(environment);
  }
  return launch;
}

int AvailableCores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  if (sched_getaffinity(0, sizeof(cores), &cores) != 0) return 1;
  // With OMP_PROC_BIND, libgomp has tied this thread to the first of its places before main, and
  // every thread that planc starts would inherit that.
  const int before = CPU_COUNT(&cores);
  for (int place = 0; place < omp_get_num_places(); ++place) {
    std::vector<int> members(omp_get_place_num_procs(place));
    omp_get_place_proc_ids(place, members.data());
    for (const int core : members) CPU_SET(core, &cores);
  }
  const int all = CPU_COUNT(&cores);
  if (all > before && sched_setaffinity(0, sizeof(cores), &cores) != 0) return before;
  return std::max(1, all);
}

}  // namespace planc
