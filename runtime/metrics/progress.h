#ifndef PLANC_RUNTIME_METRICS_PROGRESS_H_
#define PLANC_RUNTIME_METRICS_PROGRESS_H_

#include <cstdint>
#include <ostream>
#include <string>

#include "runtime/metrics/step_metrics.h"

namespace planc {

// The line for one step, at most 100 columns up to a million steps; the validation loss, where
// there is one, takes the place of gradient norm and learning rate. "step  120/1000  loss 3.2145
// grad 0.812  lr 2.90e-04  41.2k tok/s  mfu 38.1%  eta 3m12s"
std::string ProgressLine(const StepMetrics& metrics, int64_t steps);
// "42s", "3m12s", "5h07m", "12d03h".
std::string DurationText(double seconds);

// Shows how a run goes. On a terminal one line is rewritten in place; elsewhere each call writes a
// plain line, without escape codes.
class Progress {
 public:
  Progress(std::ostream& out, bool terminal, int64_t steps);
  // Ends the live line, if one is shown.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void Show(const StepMetrics& metrics);
  // A line that stays, above the live one.
  void Note(const std::string& line);

 private:
  std::ostream& out_;
  const bool terminal_;
  const int64_t steps_;
  bool live_ = false;
};

}  // namespace planc

#endif  // PLANC_RUNTIME_METRICS_PROGRESS_H_
