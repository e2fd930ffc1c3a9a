// What local_launcher_test starts as a rank: does what its argument says.

#include <unistd.h>

#include <csignal>
#include <iostream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "runtime/launch/launch.h"
#include "runtime/launch/signals.h"
#include "runtime/launch/step_page.h"

namespace {

// Ends only when the launcher or a test's time limit kills it.
[[noreturn]] void SleepForEver() {
  while (true) absl::SleepFor(absl::Seconds(1));
}

int RunRank(const std::string& mode, const planc::LaunchConfig& launch) {
  std::cout << "rank " << launch.rank << " of " << launch.world_size << " threads "
            << launch.threads << std::endl;
  const bool odd_one = launch.rank == 1;
  absl::StatusOr<planc::StepPage> steps =
      planc::StepPage::Open(launch.step_page, launch.world_size);
  if (!steps.ok()) return 98;
  steps->Publish(launch.rank, 5 + launch.rank);
  if (mode == "job-error" && odd_one) return 2;
  if (mode == "crash-twice" && odd_one && launch.restart < 2) raise(SIGKILL);
  if (mode == "hang" && odd_one) SleepForEver();
  if (mode == "hang") return 7;  // the others notice
  if (mode == "exit-code" && odd_one) {
    std::cout << "first line\nlast words" << std::endl;
    return 6;
  }
  if (mode == "exit-code") return 7;  // the others notice
  if (mode == "take-turns") {  // in the same step, each time another rank is the one that fails
    steps->Publish(launch.rank, 6);
    return launch.rank == launch.restart % 2 ? 6 : 7;
  }
  if (mode == "crash" && odd_one) raise(SIGSEGV);
  if (mode == "crash") SleepForEver();
  if (mode == "wait-for-signal") {
    const planc::ScopedStopSignals signals;
    // The launcher's parent waits for this line of rank 0 before it sends the signal; every rank
    // gets it.
    std::cout << "ready" << std::endl;
    while (planc::ScopedStopSignals::Received() == 0) absl::SleepFor(absl::Milliseconds(5));
    std::cout << "signal " << planc::ScopedStopSignals::Received() << std::endl;
    return 8;
  }
  if (mode == "process-id") {
    std::cout << "process " << getpid() << std::endl;
    SleepForEver();
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const absl::StatusOr<planc::LaunchConfig> launch = planc::DetectLaunch();
  if (argc < 2 || !launch.ok() || launch->source != planc::LaunchSource::kLocal) return 99;
  return RunRank(argv[1], *launch);
}
