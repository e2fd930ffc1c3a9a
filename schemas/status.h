#ifndef PLANC_SCHEMAS_STATUS_H_
#define PLANC_SCHEMAS_STATUS_H_

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

namespace planc {

// Returns `status` with `context: ` put before its message; an OK status stays as it is. Payloads
// (the cause, see fault.h) stay.
inline absl::Status WithContext(const absl::Status& status, const std::string& context) {
  if (status.ok()) return status;
  absl::Status result(status.code(), absl::StrCat(context, ": ", status.message()));
  status.ForEachPayload(
      [&result](auto type, const auto& payload) { result.SetPayload(type, payload); });
  return result;
}

}  // namespace planc

#define PLANC_CONCAT_INNER(a, b) a##b
#define PLANC_CONCAT(a, b) PLANC_CONCAT_INNER(a, b)

// Evaluates an absl::Status expression and returns it from the function unless it is OK.
#define PLANC_RETURN_IF_ERROR(expr)              \
  do {                                           \
    absl::Status planc_status = (expr);          \
    if (!planc_status.ok()) return planc_status; \
  } while (false)

// Evaluates an absl::StatusOr expression; assigns its value to `lhs` or returns its status.
#define PLANC_ASSIGN_OR_RETURN(lhs, expr) \
  PLANC_ASSIGN_OR_RETURN_IMPL(PLANC_CONCAT(planc_statusor_, __LINE__), lhs, expr)
#define PLANC_ASSIGN_OR_RETURN_IMPL(tmp, lhs, expr) \
  auto tmp = (expr);                                \
  if (!tmp.ok()) return tmp.status();               \
  lhs = std::move(tmp).value()

#endif  // PLANC_SCHEMAS_STATUS_H_
