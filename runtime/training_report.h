#ifndef PLANC_RUNTIME_TRAINING_REPORT_H_
#define PLANC_RUNTIME_TRAINING_REPORT_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "runtime/checkpoint/checkpointer.h"
#include "runtime/launch/launch.h"
#include "runtime/metrics/metrics_writer.h"
#include "runtime/metrics/progress.h"
#include "runtime/step/machine_rates.h"
#include "runtime/step/profile.h"
#include "runtime/step/session.h"
#include "runtime/train.h"
#include "runtime/training_data.h"
#include "schemas/plan.h"

namespace planc {

// Floating-point operations that one optimizer step takes on all ranks together, recomputation not
// counted: what utilisation is measured against.
double ModelFlopsPerStep(const Plan& plan);

// What became of the validation after a step.
struct ValidationResult {
  bool due = false;
  bool stop = false;           // a signal asked to stop
  std::optional<double> loss;  // nothing when none was due or a signal ended it

  bool IsMissing() const { return due && !loss.has_value(); }
};

// All saves of a run.
struct CheckpointTotals {
  int64_t begun = 0;
  int64_t complete = 0;
  int64_t failed = 0;
  int64_t bytes = 0;         // of the complete ones
  double stall_seconds = 0;  // taken from the step loop
  double write_seconds = 0;  // of the complete ones
};

// What a run tells the outside: metrics files and progress (rank 0), and the profile of the last
// step (every rank). On the other ranks the functions of rank 0 do nothing.
class TrainingReport {
 public:
  // `end`: steps done when the run ends. `session` and `options` must outlive the report. Shows how
  // the groups are connected.
  static absl::StatusOr<TrainingReport> Open(const Session& session, const LaunchConfig& launch,
                                             const RunOptions& options, int64_t end);

  // Opens metrics.jsonl of the run, keeping the rows of the first `resumed` steps.
  absl::Status OpenFiles(const std::string& run_id, int64_t resumed);
  // Where the run is in its data, for the rows; must outlive the report.
  void Reads(const TrainingData* data) { data_ = data; }
  // That number.
  int64_t resumed() const { return resumed_; }
  // The step at which the training ends.
  int64_t end() const { return end_; }
  // Steps done.
  int64_t done() const { return done_; }

  // Where the runner times instructions; null when it does not.
  RankProfile* profile() const { return profile_.get(); }
  // Around each step, and nothing else.
  void StepBegins();
  void StepEnds();

  // Shows a line that stays.
  void Note(const std::string& line);
  // Writes the row of the step that ended, if run.log_every_steps asks for it or a validation was
  // due. Does nothing once a row was lost.
  absl::Status Write(int64_t steps_done, double lr, const ValidationResult& validation);
  // Waits until all rows so far are on the disk, unless one was refused. Thread-safe.
  absl::Status Sync() const;

  // Whether there is a row of step `done` from before the run resumed that lacks its validation
  // loss; AddValidation completes it.
  bool LacksValidation(int64_t done) const;
  absl::Status AddValidation(double validation_loss);

  // A save took this long from the step loop.
  void CheckpointStalled(double seconds);
  // Saves that ended. One that failed, or has something to say, is shown at once.
  void CheckpointsEnded(const std::vector<SaveResult>& results);

  // Writes loss curve and profile, and shows planned beside measured memory.
  absl::Status Finish();

  // Why the run ended when the metrics of rank 0 could no longer be written, and what was saved;
  // rows that are kept for want of room are tried a last time. Cancelled when there is still none.
  absl::Status StoppedFor(const absl::Status& lost_row) const;
  // Tells that a signal ended the run, after Finish: `reason` as the rank that got it says.
  TrainingEnd Stopped(const std::string& reason) const;
  // The same before the training state was complete. `reason`: Cancelled.
  TrainingEnd StoppedEarly(const absl::Status& reason) const;

 private:
  TrainingReport(const Session& session, const LaunchConfig& launch, const RunOptions& options,
                 int64_t end);

  // Where other ranks hear that this one is held up by its files; may be null.
  StorageWatch* Storage() const;
  // What the machine attains while no other rank of it is at work.
  absl::StatusOr<MachineRates> MeasureInTurn();
  // Writes trace and table of this rank; returns the table.
  absl::StatusOr<std::string> WriteProfile();
  std::string Directory() const;
  // Of the checkpoint after the last step.
  std::string CheckpointPath() const;

  const Session* session_;
  const RunOptions* options_;
  const TrainingData* data_ = nullptr;
  bool speaks_ = false;  // rank 0
  int64_t end_ = 0;
  int64_t resumed_ = 0;  // steps done before this run
  int64_t done_ = 0;     // with those of this run
  std::string run_id_;
  double flops_per_step_ = 0;
  std::unique_ptr<RankProfile> profile_;
  std::unique_ptr<MetricsWriter> metrics_;
  std::unique_ptr<std::atomic<bool>> row_lost_ = std::make_unique<std::atomic<bool>>(false);
  std::unique_ptr<Progress> progress_;
  absl::Time step_began_;
  absl::Duration stepping_;  // since the previous row
  int64_t steps_ = 0;        // since the previous row
  absl::Duration stepped_;   // in all rows before
  int64_t all_steps_ = 0;    // in all rows before
  StepMetrics checkpoint_;   // its fields about checkpoints: since the previous row
  CheckpointTotals checkpoints_;
};

}  // namespace planc

#endif  // PLANC_RUNTIME_TRAINING_REPORT_H_
