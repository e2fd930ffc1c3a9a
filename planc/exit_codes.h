#ifndef PLANC_PLANC_EXIT_CODES_H_
#define PLANC_PLANC_EXIT_CODES_H_

#include "absl/status/status.h"

namespace planc {

// The exit code for an error: that of its cause (schemas/fault.h) where one is attached, else what
// its code stands for in runtime and compiler: DataLoss and OutOfRange 6; Unavailable,
// DeadlineExceeded and Aborted 7; ResourceExhausted 3; InvalidArgument, FailedPrecondition and
// NotFound 2; any other 1. 0 for OK.
int ExitCodeOf(const absl::Status& status);
// The same for what data check and training return, where InvalidArgument is about the contents of
// the data: 6.
int ExitCodeOfTraining(const absl::Status& status);

}  // namespace planc

#endif  // PLANC_PLANC_EXIT_CODES_H_
