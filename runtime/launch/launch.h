#ifndef PLANC_RUNTIME_LAUNCH_LAUNCH_H_
#define PLANC_RUNTIME_LAUNCH_LAUNCH_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "absl/status/statusor.h"

namespace planc {

// Who started this process.
enum class LaunchSource : uint8_t {
  kAlone,     // nobody: start the ranks with LaunchLocal, or run the only rank in process
  kLocal,     // planc's own local launcher
  kTorchrun,  // RANK, WORLD_SIZE, ... as torchrun sets them
  kSlurm,     // srun
#define PLANC_LAUNCHER(source, ...) source,
#include "runtime/launch/launchers.def"
#undef PLANC_LAUNCHER
};
const char* LaunchSourceName(LaunchSource source);

// This process's place in the job, and where the ranks meet.
struct LaunchConfig {
  LaunchSource source = LaunchSource::kAlone;
  int64_t rank = 0;
  int64_t world_size = 1;
  int64_t local_rank = 0;                // among the ranks on this machine
  int64_t local_world_size = 1;          // ranks on this machine
  std::string host;                      // this machine's name: tells machines apart
  std::string job = "local";             // tells jobs apart that share a machine
  int restart = 0;                       // how often the job was restarted
  std::string run;                       // of the local launcher: its RunStartText
  std::string store_host = "127.0.0.1";  // where rank 0 serves the store
  int store_port = 0;
  int store_socket = -1;   // rank 0 only: a socket that already listens on store_port, or -1; with
                           // store_channel its server's end
  int store_channel = -1;  // the clients' end of an InheritedChannel to rank 0, instead of a port
  std::string secret;      // what all ranks of the job know and nobody else; empty: rank 0 draws it
  int step_page = -1;      // an inherited descriptor to publish this rank's steps at (StepPage)
  std::string address;     // this rank's own address towards its peers; empty: the one that
                           // routes to store_host
  int threads = 1;         // host threads for this rank's kernels
  bool terminal =
      false;  // what this rank prints ends on a terminal (possibly through the launcher)
};

// Looks one environment variable up.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;

// The variables of this process.
Environment ProcessEnvironment();

// Reads the launch variables: planc's own, else torchrun's (RANK, WORLD_SIZE, LOCAL_RANK,
// LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT), else those of MPI and other launchers
// (launchers.def), else those of a Slurm step, else alone.
// `cores`: CPU cores that this process may use; threads = max(1, cores / local ranks) unless Slurm
// says how many belong to a task. Whether the ranks are where the mesh wants them is not known
// here: see CheckPlacement.
// Errors: InvalidArgument naming the variable that is missing or malformed; FailedPrecondition in
// a Slurm batch script of several tasks without srun, in a heterogeneous step, where task 0 is not
// on the first node, and under a launcher that does not tell enough.
absl::StatusOr<LaunchConfig> DetectLaunch(const Environment& environment, int cores);
// Of this process.
absl::StatusOr<LaunchConfig> DetectLaunch();

// Cores that the operating system lets this process use. Lets the calling thread use all of them,
// where OpenMP had tied it to fewer (OMP_PROC_BIND, OMP_PLACES).
int AvailableCores();

}  // namespace planc

#endif  // PLANC_RUNTIME_LAUNCH_LAUNCH_H_
