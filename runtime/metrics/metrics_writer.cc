#include "runtime/metrics/metrics_writer.h"

#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "schemas/fault.h"
#include "schemas/status.h"

namespace planc {
namespace {

namespace fs = std::filesystem;

// What KeepRowsUntil finds in metrics.jsonl.
struct SplitRows {
  std::optional<StepMetrics> last;  // of the rows that stay
  std::string kept;
  std::string superseded;
};

// What follows the rows that stay may be damaged: it was never waited for.
absl::StatusOr<SplitRows> SplitAfter(const std::string& path, int64_t last_step) {
  SplitRows rows;
  std::ifstream file(path, std::ios::binary);
  int64_t damaged = 0;  // number of the first line that is no row
  std::string line;
  for (int64_t number = 1; std::getline(file, line); ++number) {
    const bool whole = !file.eof();
    const absl::StatusOr<StepMetrics> row = ParseMetricsJson(line);
    if (whole && row.ok() && row->step <= last_step) {
      if (damaged > 0) {
        return absl::InvalidArgumentError(
            absl::StrCat(path, ":", damaged, ": not a row of metrics"));
      }
      absl::StrAppend(&rows.kept, line, "\n");
      rows.last = *row;
      continue;
    }
    if (!row.ok() && damaged == 0) damaged = number;
    absl::StrAppend(&rows.superseded, line, "\n");
  }
  return rows;
}

// Moves the rows after `last_step` to another file; returns the last row that stays.
absl::StatusOr<std::optional<StepMetrics>> KeepRowsUntil(const std::string& directory,
                                                         int64_t last_step) {
  const std::string path = absl::StrCat(directory, "/", kMetricsName);
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return std::optional<StepMetrics>();
  PLANC_ASSIGN_OR_RETURN(const SplitRows rows, SplitAfter(path, last_step));
  if (rows.superseded.empty()) return rows.last;
  PLANC_ASSIGN_OR_RETURN(
      const std::unique_ptr<AppendFile> aside,
      AppendFile::Open(absl::StrCat(directory, "/", kSupersededMetricsName), /*truncate=*/false));
  PLANC_RETURN_IF_ERROR(aside->Append(rows.superseded));
  PLANC_RETURN_IF_ERROR(aside->Sync());
  PLANC_RETURN_IF_ERROR(ReplaceFile(path, rows.kept));
  return rows.last;
}

}  // namespace

absl::StatusOr<std::unique_ptr<MetricsWriter>> MetricsWriter::Open(const std::string& directory,
                                                                   int64_t resumed_step,
                                                                   double wall_time) {
  std::error_code error;
  fs::create_directories(directory, error);
  if (error) {
    return SystemError(directory + ": cannot create", error.value());
  }
  std::unique_ptr<MetricsWriter> writer(new MetricsWriter(directory));
  PLANC_ASSIGN_OR_RETURN(writer->kept_, KeepRowsUntil(directory, resumed_step));
  PLANC_ASSIGN_OR_RETURN(writer->rows_, AppendFile::Open(writer->path_, /*truncate=*/false));
  PLANC_ASSIGN_OR_RETURN(writer->events_,
                         EventFile::Create(directory, wall_time, resumed_step + 1));
  PLANC_RETURN_IF_ERROR(SyncFolder(directory));
  return writer;
}

absl::Status MetricsWriter::ReplaceKept(const StepMetrics& metrics, double wall_time) {
  PLANC_RETURN_IF_ERROR(KeepRowsUntil(directory_, kept_->step - 1).status());
  PLANC_ASSIGN_OR_RETURN(rows_, AppendFile::Open(path_, /*truncate=*/false));
  kept_ = metrics;
  return Write(metrics, wall_time);
}

absl::Status MetricsWriter::Sync() {
  const absl::Status synced = rows_->SyncIfRoom();
  const std::lock_guard<std::mutex> lock(mutex_);
  synced_.Update(synced);
  return synced;
}

absl::Status MetricsWriter::Synced() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return synced_;
}

absl::Status MetricsWriter::Flush() {
  PLANC_RETURN_IF_ERROR(Synced());
  PLANC_RETURN_IF_ERROR(rows_->AppendOrKeep("", /*most_kept=*/0));
  return events_->Flush();
}

absl::Status MetricsWriter::Write(const StepMetrics& metrics, double wall_time) {
  PLANC_RETURN_IF_ERROR(Synced());
  PLANC_RETURN_IF_ERROR(rows_->AppendOrKeep(absl::StrCat(MetricsJson(metrics), "\n")));
  std::vector<std::pair<std::string, double>> scalars = {
      {"loss/train", metrics.loss},
      {"grad_norm", metrics.grad_norm},
      {"lr", metrics.lr},
      {"speed/tokens_per_second", metrics.tokens_per_second},
      {"speed/step_seconds", metrics.step_seconds},
      {"memory/resident_bytes", static_cast<double>(metrics.resident_bytes)}};
  if (metrics.validation_loss.has_value()) {
    scalars.emplace_back("loss/validation", *metrics.validation_loss);
  }
  if (metrics.mfu.has_value()) scalars.emplace_back("speed/mfu", *metrics.mfu);
  if (metrics.checkpoint_stall_seconds.has_value()) {
    scalars.emplace_back("checkpoint/stall_seconds", *metrics.checkpoint_stall_seconds);
  }
  if (metrics.checkpoint_write_seconds.has_value()) {
    scalars.emplace_back("checkpoint/write_seconds", *metrics.checkpoint_write_seconds);
  }
  if (metrics.checkpoint_bytes.has_value()) {
    scalars.emplace_back("checkpoint/bytes", static_cast<double>(*metrics.checkpoint_bytes));
  }
  return events_->WriteScalars(metrics.step, wall_time, scalars);
}

}  // namespace planc
