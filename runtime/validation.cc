#include "runtime/validation.h"

#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "runtime/launch/signals.h"
#include "runtime/step/faults.h"
#include "runtime/training_state.h"
#include "schemas/status.h"

namespace planc {

bool Validation::IsDueAfter(int64_t done) const {
  return tokens_ != nullptr &&
         IsDue(session_.plan().job.run().eval_every_steps(), done, done == end_);
}

absl::StatusOr<bool> Validation::ShouldStop() {
  const StopRequest request = ScopedStopSignals::Request();
  std::string reason(lost_.message());
  if (request.signal != 0) {
    reason = StopText(request);
    if (session_.groups()->control().world_size() > 1) {
      absl::StrAppend(&reason, " to rank ", session_.rank());
    }
  }
  return session_.groups()->control().ShouldStop(asked_++, !reason.empty(), reason);
}

absl::StatusOr<std::optional<double>> Validation::MeanLoss() {
  const int64_t global = session_.plan().job.batch().global();
  const int64_t batches = (windows_ + global - 1) / global;
  double sum = 0;
  for (int64_t batch = 0; batch < batches; ++batch) {
    ProgramInputs inputs;
    inputs.step = batch;
    inputs.tokens = tokens_;
    PLANC_RETURN_IF_ERROR(runner_->Run(ProgramKind::kEval, inputs));
    // The same on every rank, so all of them end here.
    const double loss = session_.EvalLoss();
    if (!std::isfinite(loss)) return NonFiniteError("validation loss", loss);
    sum += loss;
    PLANC_ASSIGN_OR_RETURN(const bool stop, ShouldStop());
    if (stop && batch + 1 < batches) return std::optional<double>();
  }
  // The loss of a batch is the mean over batch.global sequences; one without a window adds 0.
  const double share = static_cast<double>(batches * global) / static_cast<double>(windows_);
  return std::optional<double>(sum / static_cast<double>(batches) * share);
}

absl::StatusOr<ValidationResult> Validation::Run(int64_t done) {
  ValidationResult result;
  result.due = IsDueAfter(done);
  PLANC_ASSIGN_OR_RETURN(result.stop, ShouldStop());
  if (!result.due || result.stop) return result;
  const absl::StatusOr<std::optional<double>> loss = MeanLoss();
  if (!loss.ok()) return WithContext(loss.status(), absl::StrCat("after step ", done));
  result.loss = *loss;
  result.stop = !result.loss.has_value();
  return result;
}

absl::StatusOr<bool> Validation::MakeUp(int64_t done, TrainingReport* report) {
  if (done == 0 || !IsDueAfter(done)) return false;
  // Only rank 0 has the metrics.
  PLANC_ASSIGN_OR_RETURN(const std::string missing,
                         session_.groups()->control().Broadcast(
                             "validation", report->LacksValidation(done) ? "missing" : ""));
  if (missing.empty()) return false;
  PLANC_ASSIGN_OR_RETURN(const std::optional<double> loss, MeanLoss());
  if (!loss.has_value()) return true;
  PLANC_RETURN_IF_ERROR(report->AddValidation(*loss));
  return false;
}

}  // namespace planc
