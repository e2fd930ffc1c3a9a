#ifndef PLANC_RUNTIME_TRAINING_DATA_H_
#define PLANC_RUNTIME_TRAINING_DATA_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "runtime/data/token_loader.h"
#include "schemas/plan.h"

namespace planc {

// The token sources of a run.
class TrainingData {
 public:
  // Errors: InvalidArgument naming the file.
  static absl::StatusOr<TrainingData> Open(const Plan& plan, const std::string& directory) {
    TrainingData data;
    auto training = TokenLoader::OpenTraining(plan, directory);
    if (!training.ok()) return training.status();
    auto validation = TokenLoader::OpenValidation(plan, directory);
    if (!validation.ok()) return validation.status();
    data.training_ = *std::move(training);
    data.validation_ = *std::move(validation);
    return data;
  }

  TokenSource* training() const { return training_.get(); }
  // Null when the job names no validation files.
  TokenSource* validation() const { return validation_.get(); }

 private:
  std::unique_ptr<TokenLoader> training_;
  std::unique_ptr<TokenLoader> validation_;
};

}  // namespace planc

#endif  // PLANC_RUNTIME_TRAINING_DATA_H_
