#ifndef PLANC_RUNTIME_METRICS_STEP_METRICS_H_
#define PLANC_RUNTIME_METRICS_STEP_METRICS_H_

#include <cstdint>
#include <optional>
#include <string>

namespace planc {

// What one step reports.
struct StepMetrics {
  int64_t step = 0;    // optimizer steps done, counts from 1
  int64_t tokens = 0;  // trained on since step 0, on all batches that there were
  double loss = 0;     // nats per token, mean over the global batch
  std::optional<double> validation_loss;
  double grad_norm = 0;  // before clipping
  double lr = 0;
  double step_seconds = 0;       // mean since the previous row
  double tokens_per_second = 0;  // of the whole job
  std::optional<double> mfu;     // share of the device's peak FLOP/s; nothing where none is known
  int64_t memory_bytes = 0;      // arenas of rank 0, as planned
  int64_t resident_bytes = 0;    // peak resident memory of rank 0's process
  // Of checkpoints, since the previous row; not part of step_seconds.
  std::optional<double> checkpoint_stall_seconds;  // taken from the step loop
  std::optional<double> checkpoint_write_seconds;  // of the last save that ended
  std::optional<int64_t> checkpoint_bytes;         // of the last one that is complete
  std::optional<std::string> checkpoint_error;     // of the last one that failed
  std::optional<double> epoch;                     // passes over the training data; no whole number
  std::optional<int64_t> validation_windows;       // that validation_loss is the mean over
  std::optional<std::string> run;                  // id of the run that did the step
};

}  // namespace planc

#endif  // PLANC_RUNTIME_METRICS_STEP_METRICS_H_
