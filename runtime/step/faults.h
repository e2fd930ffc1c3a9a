#ifndef PLANC_RUNTIME_STEP_FAULTS_H_
#define PLANC_RUNTIME_STEP_FAULTS_H_

#include <string>

#include "absl/status/status.h"

namespace planc {

// Why a run ends early, by status code; the codes survive WithContext:
//   OutOfRange                      loss, gradient norm, a weight or a moment is infinite or NaN
//   InvalidArgument, DataLoss       bad data, a damaged checkpoint, or replicas that differ
//   Unavailable, DeadlineExceeded   a peer was lost, or nothing moved until the deadline
//   Aborted                         another stream of this rank failed first
// Anything else is an internal error. A fault that is attached (schemas/fault.h) comes first: that
// of the operating system's refusals, for example.

// OutOfRangeError "<what> is <value>": training cannot go on.
absl::Status NonFiniteError(const std::string& what, double value);

}  // namespace planc

#endif  // PLANC_RUNTIME_STEP_FAULTS_H_
