#ifndef PLANC_SCHEMAS_EXIT_CODE_H_
#define PLANC_SCHEMAS_EXIT_CODE_H_

namespace planc {

// Exit codes of every command, and of every rank of a run. A scheduler must not requeue 2 to 4.
enum ExitCode : int {
  kExitOk = 0,
  kExitInternal = 1,
  kExitJobError = 2,
  kExitDoesNotFit = 3,
  kExitUnsafePlan = 4,
  kExitDifferent = 5,
  kExitTrainingFault = 6,
  kExitPeerLost = 7,
  kExitStopped = 8,  // a signal asked to stop: a checkpoint was written, run again to go on
};

}  // namespace planc

#endif  // PLANC_SCHEMAS_EXIT_CODE_H_
