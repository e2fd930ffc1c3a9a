#ifndef PLANC_RUNTIME_LAUNCH_RUN_FAULT_H_
#define PLANC_RUNTIME_LAUNCH_RUN_FAULT_H_

#include <cstdint>
#include <optional>
#include <string>

#include "runtime/launch/cgroup_memory.h"

namespace planc {

// A fault that ended a run. It is the same fault again when step, code, signal and the checkpoint
// that the run had to go on from are the same; which rank was noticed first may differ.
struct RunFault {
  int64_t step = 0;  // counted from 1; 0: before the first
  int64_t code = 0;  // exit code of the rank to blame, 7 when a signal ended it; 0: no fault
  int64_t signal = 0;
  bool out_of_memory = false;   // the kernel's out-of-memory killer sent that signal
  int64_t checkpoint_step = 0;  // of the newest checkpoint; 0: none
  int64_t times = 1;            // in a row
};

bool IsSameFault(const RunFault& a, const RunFault& b);
// `fault`, with how often it has happened in a row when the one before it was `previous`.
RunFault CountedFault(RunFault fault, const std::optional<RunFault>& previous);

// A fault that happens so often in a row is not worth another try.
inline constexpr int64_t kRepeatedFault = 3;
inline constexpr int64_t kRepeatedOutOfMemory = 2;

// The exit code that it deserves: its own, or where that asks for another try and the fault has
// been repeated, 3 after the out-of-memory killer, 128 + signal after another signal, else 1.
int64_t CodeOfFault(const RunFault& fault);
// Why CodeOfFault is another than the fault's own; empty when it is not.
std::string RepetitionText(const RunFault& fault);

// Whether the out-of-memory killer sent the signal that ended a process of this process's control
// group, as the counts before and after show.
bool IsOutOfMemoryKill(int64_t signal, const OutOfMemoryKills& before,
                       const OutOfMemoryKills& after);
// What a signal that ended a process tells about why; empty for those that say nothing.
std::string SignalReason(int64_t signal, const OutOfMemoryKills& before,
                         const OutOfMemoryKills& after);

}  // namespace planc

#endif  // PLANC_RUNTIME_LAUNCH_RUN_FAULT_H_
