#include "runtime/checkpoint/control_agreement.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "schemas/fault.h"
#include "schemas/status.h"

namespace planc {
namespace {

constexpr char kTag[] = "agreement";

// The first rank's error, which names the rank when there are several.
absl::Status Verdict(const std::vector<std::string>& ranks) {
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    const absl::Status status = DecodeStatus(ranks[rank]);
    if (!status.ok()) return WithContext(status, absl::StrCat("rank ", rank));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ControlAgreement::AllOk(const absl::Status& mine) {
  PLANC_ASSIGN_OR_RETURN(const std::vector<std::string> ranks,
                         control_->Gather(kTag, EncodeStatus(mine)));
  const std::string verdict = control_->rank() == 0 ? EncodeStatus(Verdict(ranks)) : "";
  PLANC_ASSIGN_OR_RETURN(const std::string agreed, control_->Broadcast(kTag, verdict));
  return DecodeStatus(agreed);
}

absl::Status ControlAgreement::SameEverywhere(const std::string& what, const std::string& value) {
  return control_->AgreeOn(what, value);
}

void ControlAgreement::Cancel() {
  if (cancel_) cancel_();
}

}  // namespace planc
