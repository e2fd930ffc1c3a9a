#ifndef PLANC_SCHEMAS_FAULT_H_
#define PLANC_SCHEMAS_FAULT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace planc {

// What is to blame for an error, whatever its absl::StatusCode: it decides the exit code, and with
// that whether a scheduler tries again. docs/exit_codes.md has the table.
enum class Fault : uint8_t {
  kInternal = 1,     // this program
  kEnvironment = 2,  // the job or the machine as it is set up: the same again ends the same
  kDoesNotFit = 3,   // memory
  kTraining = 6,     // the numbers or the data
  kPeerLost = 7,     // a connection or another rank: again may help
};

// `status` with its cause, which WithContext keeps. OK stays OK.
absl::Status WithFault(absl::Status status, Fault fault);
// The cause that WithFault attached, if it did.
std::optional<Fault> FaultOf(const absl::Status& status);

// What a refusal of the operating system means. `error`: a value of errno.
Fault FaultOfErrno(int error);
// Internal "<what>: <the system's reason>" with that fault.
absl::Status SystemError(const std::string& what, int error);

// InvalidArgument with a line for each of `errors`, which are not OK. It has a fault when all of
// them have that one, so that what is wrong with contents outweighs a file that cannot be opened.
absl::Status JoinedErrors(const std::vector<absl::Status>& errors);

// A status as one line of text for another rank, and back; keeps code, message and fault.
std::string EncodeStatus(const absl::Status& status);
absl::Status DecodeStatus(const std::string& text);

}  // namespace planc

#endif  // PLANC_SCHEMAS_FAULT_H_
