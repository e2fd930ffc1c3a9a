#ifndef PLANC_RUNTIME_METRICS_METRICS_WRITER_H_
#define PLANC_RUNTIME_METRICS_METRICS_WRITER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/metrics/append_file.h"
#include "runtime/metrics/event_file.h"
#include "runtime/metrics/metrics_json.h"
#include "runtime/metrics/step_metrics.h"

namespace planc {

// Writes `directory`/metrics.jsonl, a line per step, and a TensorBoard event file beside it.
class MetricsWriter {
 public:
  // Creates the directory. Rows of steps after `resumed_step`, which the resumed run will do again,
  // are removed; with 0 the run starts anew and so do the files. `wall_time`: now, in seconds since
  // 1970. Errors: Internal naming the path; InvalidArgument for a damaged metrics.jsonl.
  static absl::StatusOr<std::unique_ptr<MetricsWriter>> Open(const std::string& directory,
                                                             int64_t resumed_step,
                                                             double wall_time);

  // The last row that was kept when the run resumed.
  const std::optional<StepMetrics>& kept() const { return kept_; }
  // Replaces that row. REQUIRES: kept(), and no row was written since.
  absl::Status ReplaceKept(const StepMetrics& metrics, double wall_time);

  // Appends one row to each file and hands it to the operating system before it returns.
  absl::Status Write(const StepMetrics& metrics, double wall_time);
  // Waits until all rows so far are on the disk. Thread-safe.
  absl::Status Sync() const { return rows_->Sync(); }

 private:
  explicit MetricsWriter(std::string path) : path_(std::move(path)) {}

  const std::string path_;  // of metrics.jsonl
  std::unique_ptr<AppendFile> rows_;
  std::unique_ptr<EventFile> events_;
  std::optional<StepMetrics> kept_;
};

}  // namespace planc

#endif  // PLANC_RUNTIME_METRICS_METRICS_WRITER_H_
