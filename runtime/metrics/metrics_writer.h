#ifndef PLANC_RUNTIME_METRICS_METRICS_WRITER_H_
#define PLANC_RUNTIME_METRICS_METRICS_WRITER_H_

#include <cstdint>
#include <memory>
#include <mutex>
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

inline constexpr char kMetricsName[] = "metrics.jsonl";
inline constexpr char kSupersededMetricsName[] = "metrics-superseded.jsonl";

// Writes `directory`/metrics.jsonl, a line per step, and a TensorBoard event file beside it.
class MetricsWriter {
 public:
  // Creates the directory. Rows of steps after `resumed_step`, which the run will do again, are
  // moved to the end of metrics-superseded.jsonl, damaged lines among them. Event files stay: each
  // start writes one of its own. `wall_time`: now, in seconds since 1970.
  // Errors: Internal naming the path; InvalidArgument for a damaged metrics.jsonl.
  static absl::StatusOr<std::unique_ptr<MetricsWriter>> Open(const std::string& directory,
                                                             int64_t resumed_step,
                                                             double wall_time);

  // The last row that was kept when the run resumed.
  const std::optional<StepMetrics>& kept() const { return kept_; }
  // Replaces that row. REQUIRES: kept(), and no row was written since.
  absl::Status ReplaceKept(const StepMetrics& metrics, double wall_time);

  // Appends one row to each file and hands it to the operating system before it returns. While the
  // disk has no room, rows are kept in memory and written with a later one. Errors: as
  // AppendFile::AppendOrKeep; it then may be called again.
  absl::Status Write(const StepMetrics& metrics, double wall_time);
  // Writes the rows that are kept; an error when there is still no room for one of them.
  absl::Status Flush();
  // Waits until all rows so far are on the disk, except those that are kept. An error is also
  // that of the next Write or Flush. Thread-safe.
  absl::Status Sync();

 private:
  absl::Status Synced();
  explicit MetricsWriter(const std::string& directory)
      : directory_(directory), path_(directory + "/" + kMetricsName) {}

  const std::string directory_;
  const std::string path_;  // of metrics.jsonl
  std::unique_ptr<AppendFile> rows_;
  std::unique_ptr<EventFile> events_;
  std::optional<StepMetrics> kept_;
  std::mutex mutex_;
  absl::Status synced_;  // guarded by mutex_
};

}  // namespace planc

#endif  // PLANC_RUNTIME_METRICS_METRICS_WRITER_H_
