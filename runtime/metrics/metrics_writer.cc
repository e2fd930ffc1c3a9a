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

// Removes event files of an earlier run.
absl::Status RemoveEventFiles(const std::string& directory) {
  std::vector<fs::path> paths;
  std::error_code error;
  fs::directory_iterator at(directory, error);
  for (; !error && at != fs::directory_iterator(); at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (name.rfind("events.out.tfevents.", 0) == 0) paths.push_back(at->path());
  }
  for (const fs::path& path : paths) {
    fs::remove(path, error);
    if (error) {
      return SystemError(path.string() + ": cannot remove", error.value());
    }
  }
  return absl::OkStatus();
}

// Rewrites the file without rows after `last_step`; returns the last row that stays. What follows
// the rows that stay may be damaged: it was never waited for.
absl::StatusOr<std::optional<StepMetrics>> KeepRowsUntil(const std::string& path,
                                                         int64_t last_step) {
  std::optional<StepMetrics> last;
  std::error_code error;
  if (!fs::exists(path, error)) return last;
  std::ifstream file(path, std::ios::binary);
  std::string kept;
  int64_t damaged = 0;  // number of the first line that is no row
  std::string line;
  for (int64_t number = 1; std::getline(file, line) && !file.eof(); ++number) {
    const absl::StatusOr<StepMetrics> row = ParseMetricsJson(line);
    if (!row.ok()) {
      if (damaged == 0) damaged = number;
    } else if (row->step <= last_step) {
      if (damaged > 0) {
        return absl::InvalidArgumentError(
            absl::StrCat(path, ":", damaged, ": not a row of metrics"));
      }
      absl::StrAppend(&kept, line, "\n");
      last = *row;
    }
  }
  PLANC_RETURN_IF_ERROR(ReplaceFile(path, kept));
  return last;
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
  std::unique_ptr<MetricsWriter> writer(
      new MetricsWriter(absl::StrCat(directory, "/metrics.jsonl")));
  if (resumed_step > 0) {
    PLANC_ASSIGN_OR_RETURN(writer->kept_, KeepRowsUntil(writer->path_, resumed_step));
  } else {
    PLANC_RETURN_IF_ERROR(RemoveEventFiles(directory));
  }
  PLANC_ASSIGN_OR_RETURN(writer->rows_,
                         AppendFile::Open(writer->path_, /*truncate=*/resumed_step == 0));
  PLANC_ASSIGN_OR_RETURN(writer->events_, EventFile::Create(directory, wall_time));
  PLANC_RETURN_IF_ERROR(SyncFolder(directory));
  return writer;
}

absl::Status MetricsWriter::ReplaceKept(const StepMetrics& metrics, double wall_time) {
  PLANC_RETURN_IF_ERROR(KeepRowsUntil(path_, kept_->step - 1).status());
  PLANC_ASSIGN_OR_RETURN(rows_, AppendFile::Open(path_, /*truncate=*/false));
  kept_ = metrics;
  return Write(metrics, wall_time);
}

absl::Status MetricsWriter::Write(const StepMetrics& metrics, double wall_time) {
  PLANC_RETURN_IF_ERROR(rows_->Append(absl::StrCat(MetricsJson(metrics), "\n")));
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
