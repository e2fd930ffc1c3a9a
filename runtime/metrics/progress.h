#ifndef PLANC_RUNTIME_METRICS_PROGRESS_H_
#define PLANC_RUNTIME_METRICS_PROGRESS_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <ostream>
#include <string>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "runtime/metrics/step_metrics.h"

namespace planc {

// The line for one step, at most 100 columns up to a million steps; the validation loss, where
// there is one, takes the place of gradient norm and learning rate. "step  120/1000  loss 3.2145
// grad 0.812  lr 2.90e-04  41.2k tok/s  mfu 38.1%  eta 3m12s"
std::string ProgressLine(const StepMetrics& metrics, int64_t steps);
// The same in at most `columns`: what matters least is left out, first the learning rate, last the
// loss. `seconds_per_step` is what the time left is reckoned with.
std::string ProgressLine(const StepMetrics& metrics, int64_t steps, double seconds_per_step,
                         int columns);
// "42s", "3m12s", "5h07m", "12d03h".
std::string DurationText(double seconds);

// How long a step takes, for the time left: the steps themselves as an average in which the last
// few dozen count, and what lies between them, validation and checkpoints, as the mean of the run
// so far, so that neither makes the time left jump. The first row, with its warm-up, counts only
// until there is a second one.
class StepPace {
 public:
  // `step_seconds`: mean of the steps since the row before.
  void Add(int64_t step, double step_seconds, absl::Time now);
  // 0 before the first row.
  double SecondsPerStep() const;

 private:
  std::optional<int64_t> step_;  // of the last row
  absl::Time when_;              // of the last row
  double step_seconds_ = 0;
  int64_t counted_ = 0;         // steps since the first row
  double outside_seconds_ = 0;  // that were no part of these steps
};

// Columns of a terminal, asked before each line; 0 when unknown.
using ColumnsFunction = std::function<int()>;

// Shows how a run goes. On a terminal one line is rewritten in place, as wide as the terminal is at
// that moment; elsewhere each call writes a plain line, without escape codes.
class Progress {
 public:
  Progress(std::ostream& out, bool terminal, int64_t steps, ColumnsFunction columns = nullptr);
  // Ends the live line, if one is shown.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void Show(const StepMetrics& metrics, absl::Time now = absl::Now());
  // A line that stays, above the live one.
  void Note(const std::string& line);

 private:
  std::ostream& out_;
  const bool terminal_;
  const int64_t steps_;
  const ColumnsFunction columns_;
  StepPace pace_;
  bool live_ = false;
};

}  // namespace planc

#endif  // PLANC_RUNTIME_METRICS_PROGRESS_H_
