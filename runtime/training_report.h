#ifndef PLANC_RUNTIME_TRAINING_REPORT_H_
#define PLANC_RUNTIME_TRAINING_REPORT_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "runtime/launch/launch.h"
#include "runtime/metrics/metrics_writer.h"
#include "runtime/metrics/progress.h"
#include "runtime/step/profile.h"
#include "runtime/step/session.h"
#include "runtime/train.h"
#include "schemas/plan.h"

namespace planc {

// Floating-point operations that one optimizer step takes on all ranks together, recomputation not
// counted: what utilisation is measured against.
double ModelFlopsPerStep(const Plan& plan);

// What a run tells the outside: metrics files and progress (rank 0), and the profile of the last
// step (every rank). On the other ranks the functions of rank 0 do nothing.
class TrainingReport {
 public:
  // `end`: steps done when the run ends. `session` and `options` must outlive the report.
  static absl::StatusOr<TrainingReport> Open(const Session& session, const LaunchConfig& launch,
                                             const RunOptions& options, int64_t end);

  // Opens metrics.jsonl, keeping the rows of the first `resumed` steps.
  absl::Status OpenFiles(int64_t resumed);

  // Where the runner times instructions; null when it does not.
  RankProfile* profile() const { return profile_.get(); }
  // Around each step, and nothing else.
  void StepBegins();
  void StepEnds();

  // Shows a line that stays.
  void Note(const std::string& line);
  // Writes the row of the step that ended, if run.log_every_steps or a validation loss asks for it.
  absl::Status Write(int64_t steps_done, double lr, const std::optional<double>& validation_loss);

  // Writes loss curve and profile, and shows planned beside measured memory.
  absl::Status Finish();

 private:
  TrainingReport(const Session& session, const LaunchConfig& launch, const RunOptions& options,
                 int64_t end);

  absl::Status WriteProfile();
  std::string Directory() const;

  const Session* session_;
  const RunOptions* options_;
  bool speaks_ = false;  // rank 0
  int64_t end_ = 0;
  double flops_per_step_ = 0;
  std::unique_ptr<RankProfile> profile_;
  std::unique_ptr<MetricsWriter> metrics_;
  std::unique_ptr<Progress> progress_;
  absl::Time step_began_;
  absl::Duration stepping_;  // since the previous row
  int64_t steps_ = 0;        // since the previous row
};

}  // namespace planc

#endif  // PLANC_RUNTIME_TRAINING_REPORT_H_
