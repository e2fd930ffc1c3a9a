#ifndef PLANC_PLANC_COMMAND_RUN_VIEW_H_
#define PLANC_PLANC_COMMAND_RUN_VIEW_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/checkpoint/run_record.h"
#include "runtime/launch/run_lock.h"
#include "runtime/metrics/step_metrics.h"

namespace planc {

// What the files of a run tell about it, from any process that can read them.
struct RunView {
  std::string directory;
  RunRecord record;
  LockView lock;                    // of run.directory
  std::optional<StepMetrics> last;  // the last row of metrics.jsonl
  std::string checkpoint;           // the newest of its checkpoints; empty: none
  int64_t step = 0;                 // steps done

  // "completed", "running", or "gone": it was running, and its owner has died.
  std::string State() const;
};
// `host`: this machine's name. Errors: NotFound without run.json; DataLoss when it cannot be read.
absl::StatusOr<RunView> ViewRun(const std::string& directory, const std::string& host);

// The last whole row of a metrics file, found from its end. Nothing when there is none.
std::optional<StepMetrics> LastMetricsRow(const std::string& path);

}  // namespace planc

#endif  // PLANC_PLANC_COMMAND_RUN_VIEW_H_
