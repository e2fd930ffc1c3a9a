#ifndef PLANC_RUNTIME_CHECKPOINT_CONTROL_AGREEMENT_H_
#define PLANC_RUNTIME_CHECKPOINT_CONTROL_AGREEMENT_H_

#include <functional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "runtime/checkpoint/agreement.h"
#include "runtime/process_group/control.h"

namespace planc {

// Agreement over the job's control channel.
class ControlAgreement : public Agreement {
 public:
  // `control` must outlive this object. `cancel` makes its waits fail; without it Cancel does
  // nothing.
  explicit ControlAgreement(Control* control, std::function<void()> cancel = nullptr)
      : control_(control), cancel_(std::move(cancel)) {}

  absl::Status AllOk(const absl::Status& mine) override;
  absl::Status SameEverywhere(const std::string& what, const std::string& value) override;
  void Cancel() override;

 private:
  Control* const control_;
  const std::function<void()> cancel_;
};

}  // namespace planc

#endif  // PLANC_RUNTIME_CHECKPOINT_CONTROL_AGREEMENT_H_
