#ifndef PLANC_PLANC_EXIT_CODE_TEXT_H_
#define PLANC_PLANC_EXIT_CODE_TEXT_H_

#include <string>
#include <utility>
#include <vector>

#include "schemas/exit_code.h"

namespace planc {

// Every exit code and what it means, for people.
inline std::vector<std::pair<ExitCode, std::string>> ExitCodeTexts() {
  return {{kExitOk, "ok"},
          {kExitInternal, "internal error"},
          {kExitJobError, "job error"},
          {kExitDoesNotFit, "does not fit in memory"},
          {kExitUnsafePlan, "unsafe plan"},
          {kExitDifferent, "differences found"},
          {kExitTrainingFault, "training fault: non-finite loss, bad data"},
          {kExitPeerLost, "a peer was lost or timed out"},
          {kExitStopped, "stopped by a signal, with a checkpoint to go on from"}};
}

}  // namespace planc

#endif  // PLANC_PLANC_EXIT_CODE_TEXT_H_
