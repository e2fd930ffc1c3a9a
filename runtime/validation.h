#ifndef PLANC_RUNTIME_VALIDATION_H_
#define PLANC_RUNTIME_VALIDATION_H_

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "runtime/data/token_source.h"
#include "runtime/step/run_program.h"
#include "runtime/step/session.h"
#include "runtime/training_data.h"
#include "runtime/training_report.h"

namespace planc {

// Validation losses, and whether to stop: the two go together because a signal ends a validation.
// All ranks call the same functions with the same steps and receive the same answers.
class Validation {
 public:
  // `end`: steps done when the run ends.
  Validation(const Session& session, ProgramRunner* runner, const TrainingData& data, int64_t end)
      : session_(session),
        runner_(runner),
        tokens_(data.validation()),
        windows_(data.ValidationWindows()),
        end_(end) {}

  // After a step: asks whether to stop, and takes the validation loss if one is due after `done`
  // steps and nobody asked to stop. Errors: OutOfRange when that loss is not finite.
  absl::StatusOr<ValidationResult> Run(int64_t done);

  // Asks for a stop at the next occasion, as a signal does, when this row of metrics was lost.
  void StopIfLost(const absl::Status& written) { lost_.Update(written); }
  // Why it was lost; OK when none was.
  const absl::Status& lost() const { return lost_; }

  // When the run resumes after `done` steps: takes the validation loss that a signal kept from this
  // step's row of metrics. Returns whether to stop.
  absl::StatusOr<bool> MakeUp(int64_t done, TrainingReport* report);

 private:
  bool IsDueAfter(int64_t done) const;
  absl::StatusOr<bool> ShouldStop();
  // Mean loss over the first windows, run.eval_batches global batches of them or as many as there
  // are; nothing when it was told to stop before.
  absl::StatusOr<std::optional<double>> MeanLoss();

  const Session& session_;
  ProgramRunner* const runner_;
  TokenSource* const tokens_;  // null when the job has no validation data
  const int64_t windows_;      // that a validation uses
  const int64_t end_;
  absl::Status lost_;
  int64_t asked_ = 0;  // how often the ranks were asked whether to stop
};

}  // namespace planc

#endif  // PLANC_RUNTIME_VALIDATION_H_
