#ifndef PLANC_RUNTIME_CHECKPOINT_CONTROL_AGREEMENT_H_
#define PLANC_RUNTIME_CHECKPOINT_CONTROL_AGREEMENT_H_

#include <string>

#include "absl/status/status.h"
#include "runtime/checkpoint/agreement.h"
#include "runtime/process_group/control.h"

namespace planc {

// Agreement over the job's control channel.
class ControlAgreement : public Agreement {
 public:
  // `control` must outlive this object.
  explicit ControlAgreement(Control* control) : control_(control) {}

  absl::Status AllOk(const absl::Status& mine) override;
  absl::Status SameEverywhere(const std::string& what, const std::string& value) override;

 private:
  Control* const control_;
};

}  // namespace planc

#endif  // PLANC_RUNTIME_CHECKPOINT_CONTROL_AGREEMENT_H_
