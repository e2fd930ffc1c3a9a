#include "runtime/metrics/metrics_writer.h"

#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
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
      return absl::InternalError(absl::StrCat(path.string(), ": cannot remove: ", error.message()));
    }
  }
  return absl::OkStatus();
}

// Rewrites the file without rows after `last_step`.
absl::Status KeepRowsUntil(const std::string& path, int64_t last_step) {
  std::error_code error;
  if (!fs::exists(path, error)) return absl::OkStatus();
  PLANC_ASSIGN_OR_RETURN(const std::vector<StepMetrics> rows, ReadMetrics(path));
  std::string kept;
  for (const StepMetrics& row : rows) {
    if (row.step <= last_step) absl::StrAppend(&kept, MetricsJson(row), "\n");
  }
  return ReplaceFile(path, kept);
}

}  // namespace

MetricsWriter::MetricsWriter(std::unique_ptr<AppendFile> rows, std::unique_ptr<EventFile> events)
    : rows_(std::move(rows)), events_(std::move(events)) {}

absl::StatusOr<std::unique_ptr<MetricsWriter>> MetricsWriter::Open(const std::string& directory,
                                                                   int64_t resumed_step,
                                                                   double wall_time) {
  std::error_code error;
  fs::create_directories(directory, error);
  if (error) {
    return absl::InternalError(absl::StrCat(directory, ": cannot create: ", error.message()));
  }
  const std::string path = absl::StrCat(directory, "/metrics.jsonl");
  if (resumed_step > 0) {
    PLANC_RETURN_IF_ERROR(KeepRowsUntil(path, resumed_step));
  } else {
    PLANC_RETURN_IF_ERROR(RemoveEventFiles(directory));
  }
  PLANC_ASSIGN_OR_RETURN(std::unique_ptr<AppendFile> rows,
                         AppendFile::Open(path, /*truncate=*/resumed_step == 0));
  PLANC_ASSIGN_OR_RETURN(std::unique_ptr<EventFile> events,
                         EventFile::Create(directory, wall_time));
  return std::unique_ptr<MetricsWriter>(new MetricsWriter(std::move(rows), std::move(events)));
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
  return events_->WriteScalars(metrics.step, wall_time, scalars);
}

}  // namespace planc
