#include "schemas/fault.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"

namespace planc {
namespace {

constexpr char kPayload[] = "planc.fault";

// 0: none.
int NumberOf(const absl::Status& status) {
  const std::optional<Fault> fault = FaultOf(status);
  return fault.has_value() ? static_cast<int>(*fault) : 0;
}

}  // namespace

absl::Status WithFault(absl::Status status, Fault fault) {
  if (!status.ok()) status.SetPayload(kPayload, absl::Cord(absl::StrCat(static_cast<int>(fault))));
  return status;
}

std::optional<Fault> FaultOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kPayload);
  if (!payload.has_value()) return std::nullopt;
  return static_cast<Fault>(std::atoi(std::string(*payload).c_str()));
}

Fault FaultOfErrno(int error) {
  switch (error) {
    case ENOMEM:
      return Fault::kDoesNotFit;
    case ECONNABORTED:
    case ECONNREFUSED:
    case ECONNRESET:
    case EHOSTDOWN:
    case EHOSTUNREACH:
    case ENETDOWN:
    case ENETRESET:
    case ENETUNREACH:
    case ENOTCONN:
    case EPIPE:
    case ETIMEDOUT:
      return Fault::kPeerLost;
    case EBADF:
    case EFAULT:
    case EINVAL:
      return Fault::kInternal;
    default:
      return Fault::kEnvironment;
  }
}

absl::Status SystemError(const std::string& what, int error) {
  return WithFault(absl::InternalError(absl::StrCat(what, ": ", std::strerror(error))),
                   FaultOfErrno(error));
}

absl::Status JoinedErrors(const std::vector<absl::Status>& errors) {
  if (errors.empty()) return absl::OkStatus();
  std::string text;
  int fault = NumberOf(errors.front());
  for (const absl::Status& error : errors) {
    absl::StrAppend(&text, text.empty() ? "" : "\n", error.message());
    if (NumberOf(error) != fault) fault = 0;
  }
  const absl::Status joined = absl::InvalidArgumentError(text);
  return fault == 0 ? joined : WithFault(joined, static_cast<Fault>(fault));
}

std::string EncodeStatus(const absl::Status& status) {
  if (status.ok()) return "";
  return absl::StrCat(static_cast<int>(status.code()), " ", NumberOf(status), " ",
                      status.message());
}

absl::Status DecodeStatus(const std::string& text) {
  if (text.empty()) return absl::OkStatus();
  char* rest = nullptr;
  const auto code = static_cast<absl::StatusCode>(std::strtol(text.c_str(), &rest, 10));
  const long fault = std::strtol(rest, &rest, 10);
  const absl::Status status(code, *rest == '\0' ? rest : rest + 1);
  return fault == 0 ? status : WithFault(status, static_cast<Fault>(fault));
}

}  // namespace planc
