#ifndef PLANC_RUNTIME_TRAINING_DATA_H_
#define PLANC_RUNTIME_TRAINING_DATA_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/checkpoint/manifest.h"
#include "runtime/checkpoint/saved_data.h"
#include "runtime/data/token_loader.h"
#include "runtime/run_start.h"
#include "schemas/plan.h"

namespace planc {

// The token sources of a run, what their files are known by, and where the run is in them.
class TrainingData {
 public:
  // Errors: InvalidArgument naming the file.
  static absl::StatusOr<TrainingData> Open(const Plan& plan, const std::string& directory);

  // Compares the files, as this rank sees them now, with those that the run began with. What was
  // appended since is left for another start. Errors: DataLoss with what the files were and are.
  absl::Status CheckThatOf(const RunStart& run);

  // Goes on where a checkpoint was; null: begins. `notices` receives what is other than it was, a
  // line each. Errors: as PositionAfter.
  absl::Status GoOn(const Manifest* from, std::vector<std::string>* notices);

  TokenLoader* training() const { return training_.get(); }
  // Null when the job names no validation files.
  TokenLoader* validation() const { return validation_.get(); }

  // After `steps` steps of the whole training. REQUIRES: no fewer than GoOn found done.
  DataPosition After(int64_t steps) const;
  // The same for a checkpoint. Thread-safe once GoOn has returned.
  SavedData SavedAfter(int64_t steps) const { return {After(steps), identity_}; }
  // Passes over the training data that are done after `steps` steps.
  double EpochsAfter(int64_t steps) const;
  // How many windows a validation uses, each once; 0 without one.
  int64_t ValidationWindows() const;

  // For people, a line each: how much data there is and how much of it is read up to step `end`.
  std::vector<std::string> Amounts(int64_t end) const;

 private:
  explicit TrainingData(const Plan& plan, const std::string& directory)
      : plan_(&plan), directory_(directory) {}

  const Plan* plan_;
  std::string directory_;
  std::unique_ptr<TokenLoader> training_;
  std::unique_ptr<TokenLoader> validation_;
  DataIdentity identity_;
  DataPosition begun_;      // when the run began or went on
  int64_t begun_step_ = 0;  // steps done then
};

}  // namespace planc

#endif  // PLANC_RUNTIME_TRAINING_DATA_H_
