#include "runtime/launch/run_fault.h"

#include <csignal>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "schemas/counted.h"
#include "schemas/exit_code.h"

namespace planc {

bool IsSameFault(const RunFault& a, const RunFault& b) {
  return a.step == b.step && a.code == b.code && a.signal == b.signal &&
         a.checkpoint_step == b.checkpoint_step;
}

RunFault CountedFault(RunFault fault, const std::optional<RunFault>& previous) {
  if (previous.has_value() && IsSameFault(*previous, fault)) fault.times += previous->times;
  return fault;
}

int64_t CodeOfFault(const RunFault& fault) {
  if (fault.code != kExitPeerLost) return fault.code;
  if (fault.out_of_memory && fault.times >= kRepeatedOutOfMemory) return kExitDoesNotFit;
  if (fault.times < kRepeatedFault) return fault.code;
  if (fault.signal == 0) return kExitInternal;
  return 128 + fault.signal;
}

std::string RepetitionText(const RunFault& fault) {
  const int64_t code = CodeOfFault(fault);
  if (code == fault.code) return "";
  const std::string what =
      fault.out_of_memory ? "the out-of-memory killer ended a rank"
      : fault.signal != 0
          ? absl::StrCat("signal ", fault.signal, " (", strsignal(static_cast<int>(fault.signal)),
                         ") ended a rank")
          : "a rank was lost";
  return absl::StrCat(
      Counted(fault.times, "time"), " in a row ", what,
      fault.step == 0 ? std::string(" before its first step")
                      : absl::StrCat(" in step ", fault.step),
      ", without a new checkpoint in between: to start it again would end the same, so the exit "
      "code is ",
      code, " instead of ", fault.code);
}

bool IsOutOfMemoryKill(int64_t signal, const OutOfMemoryKills& before,
                       const OutOfMemoryKills& after) {
  return signal == SIGKILL && after.own_group > before.own_group;
}

std::string SignalReason(int64_t signal, const OutOfMemoryKills& before,
                         const OutOfMemoryKills& after) {
  switch (signal) {
    case SIGKILL:
      if (IsOutOfMemoryKill(signal, before, after)) {
        return "the kernel's out-of-memory killer ended it, says oom_kill of its control group";
      }
      if (after.machine > before.machine) {
        return "the kernel's out-of-memory killer ended a process of this machine meanwhile, says "
               "oom_kill of /proc/vmstat";
      }
      return "SIGKILL comes from another process, or from the out-of-memory killer of a group that "
             "is not seen here; the kernel's log (dmesg) would tell";
    case SIGBUS:
      return "a mapped file became shorter or cannot be read, or shared memory is used up";
    case SIGSEGV:
    case SIGABRT:
    case SIGFPE:
    case SIGILL:
      return "a mistake in planc or in a library, or a broken machine";
    default:
      return "";
  }
}

}  // namespace planc
