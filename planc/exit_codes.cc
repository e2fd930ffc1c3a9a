#include "planc/exit_codes.h"

#include <optional>

#include "schemas/exit_code.h"
#include "schemas/fault.h"

namespace planc {
namespace {

int ExitCodeOfFault(Fault fault) {
  switch (fault) {
    case Fault::kInternal:
      return kExitInternal;
    case Fault::kEnvironment:
      return kExitJobError;
    case Fault::kDoesNotFit:
      return kExitDoesNotFit;
    case Fault::kTraining:
      return kExitTrainingFault;
    case Fault::kPeerLost:
      return kExitPeerLost;
  }
  return kExitInternal;
}

}  // namespace

int ExitCodeOf(const absl::Status& status) {
  const std::optional<Fault> fault = FaultOf(status);
  if (fault.has_value()) return ExitCodeOfFault(*fault);
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return kExitOk;
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kDataLoss:
      return kExitTrainingFault;
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kAborted:
      return kExitPeerLost;
    case absl::StatusCode::kResourceExhausted:
      return kExitDoesNotFit;
    case absl::StatusCode::kCancelled:  // by a signal, before the first step
      return kExitStopped;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kFailedPrecondition:  // other plans, a checkpoint of another model
    case absl::StatusCode::kNotFound:            // no such checkpoint
      return kExitJobError;
    default:
      return kExitInternal;
  }
}

int ExitCodeOfTraining(const absl::Status& status) {
  const bool about_data = absl::IsInvalidArgument(status) && !FaultOf(status).has_value();
  return about_data ? kExitTrainingFault : ExitCodeOf(status);
}

}  // namespace planc
