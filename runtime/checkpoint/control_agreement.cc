#include "runtime/checkpoint/control_agreement.h"

#include <charconv>
#include <vector>

#include "absl/strings/str_cat.h"
#include "schemas/status.h"

namespace planc {
namespace {

constexpr char kTag[] = "agreement";

// "<code> <message>".
std::string StatusText(const absl::Status& status) {
  return absl::StrCat(static_cast<int>(status.code()), " ", status.message());
}

absl::Status StatusFromText(const std::string& text) {
  int code = static_cast<int>(absl::StatusCode::kInternal);
  const char* const end = text.data() + text.size();
  const char* const rest = std::from_chars(text.data(), end, code).ptr;
  return absl::Status(static_cast<absl::StatusCode>(code),
                      rest == end ? std::string() : std::string(rest + 1, end));
}

// The first rank's error, which names the rank when there are several.
absl::Status Verdict(const std::vector<std::string>& ranks) {
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    const absl::Status status = StatusFromText(ranks[rank]);
    if (!status.ok()) return WithContext(status, absl::StrCat("rank ", rank));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ControlAgreement::AllOk(const absl::Status& mine) {
  PLANC_ASSIGN_OR_RETURN(const std::vector<std::string> ranks,
                         control_->Gather(kTag, StatusText(mine)));
  const std::string verdict = control_->rank() == 0 ? StatusText(Verdict(ranks)) : "";
  PLANC_ASSIGN_OR_RETURN(const std::string agreed, control_->Broadcast(kTag, verdict));
  return StatusFromText(agreed);
}

absl::Status ControlAgreement::SameEverywhere(const std::string& what, const std::string& value) {
  return control_->AgreeOn(what, value);
}

void ControlAgreement::Cancel() {
  if (cancel_) cancel_();
}

}  // namespace planc
