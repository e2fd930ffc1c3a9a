#include "runtime/metrics/metrics_json.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"

namespace planc {
namespace {

using Json = nlohmann::ordered_json;

Json Number(double value) { return std::isfinite(value) ? Json(value) : Json(); }

Json Number(const std::optional<double>& value) {
  return value.has_value() ? Number(*value) : Json();
}

// A number, NaN for null and for a field that is not there.
bool Read(const Json& row, const char* name, double* value) {
  const auto field = row.find(name);
  if (field == row.end() || field->is_null()) {
    *value = std::numeric_limits<double>::quiet_NaN();
    return true;
  }
  if (!field->is_number()) return false;
  *value = field->get<double>();
  return true;
}

bool Read(const Json& row, const char* name, std::optional<double>* value) {
  double number = 0;
  if (!Read(row, name, &number)) return false;
  if (!std::isnan(number)) *value = number;
  return true;
}

bool Read(const Json& row, const char* name, int64_t* value) {
  const auto field = row.find(name);
  if (field == row.end() || !field->is_number_integer()) return false;
  *value = field->get<int64_t>();
  return true;
}

bool Read(const Json& row, const char* name, std::optional<int64_t>* value) {
  if (row.find(name) == row.end()) return true;
  return Read(row, name, &value->emplace());
}

bool Read(const Json& row, const char* name, std::optional<std::string>* value) {
  const auto field = row.find(name);
  if (field == row.end()) return true;
  if (!field->is_string()) return false;
  *value = field->get<std::string>();
  return true;
}

void AddCheckpoint(const StepMetrics& metrics, Json* row) {
  if (metrics.checkpoint_stall_seconds.has_value()) {
    (*row)["checkpoint_stall_seconds"] = Number(*metrics.checkpoint_stall_seconds);
  }
  if (metrics.checkpoint_write_seconds.has_value()) {
    (*row)["checkpoint_write_seconds"] = Number(*metrics.checkpoint_write_seconds);
  }
  if (metrics.checkpoint_bytes.has_value()) (*row)["checkpoint_bytes"] = *metrics.checkpoint_bytes;
  if (metrics.checkpoint_error.has_value()) (*row)["checkpoint_error"] = *metrics.checkpoint_error;
}

}  // namespace

std::string MetricsJson(const StepMetrics& metrics) {
  Json row;
  row["step"] = metrics.step;
  row["tokens"] = metrics.tokens;
  row["loss"] = Number(metrics.loss);
  if (metrics.validation_loss.has_value()) {
    row["validation_loss"] = Number(*metrics.validation_loss);
  }
  row["grad_norm"] = Number(metrics.grad_norm);
  row["lr"] = Number(metrics.lr);
  row["step_seconds"] = Number(metrics.step_seconds);
  row["tokens_per_second"] = Number(metrics.tokens_per_second);
  row["mfu"] = Number(metrics.mfu);
  row["memory_bytes"] = metrics.memory_bytes;
  row["resident_bytes"] = metrics.resident_bytes;
  AddCheckpoint(metrics, &row);
  if (metrics.epoch.has_value()) row["epoch"] = Number(*metrics.epoch);
  if (metrics.validation_windows.has_value()) {
    row["validation_windows"] = *metrics.validation_windows;
  }
  if (metrics.run.has_value()) row["run"] = *metrics.run;
  // An error of the system may name a file in any encoding.
  return row.dump(-1, ' ', false, Json::error_handler_t::replace);
}

absl::StatusOr<StepMetrics> ParseMetricsJson(const std::string& line) {
  const Json row = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  StepMetrics metrics;
  if (!row.is_object() || !Read(row, "step", &metrics.step) ||
      !Read(row, "tokens", &metrics.tokens) || !Read(row, "loss", &metrics.loss) ||
      !Read(row, "validation_loss", &metrics.validation_loss) ||
      !Read(row, "grad_norm", &metrics.grad_norm) || !Read(row, "lr", &metrics.lr) ||
      !Read(row, "step_seconds", &metrics.step_seconds) ||
      !Read(row, "tokens_per_second", &metrics.tokens_per_second) ||
      !Read(row, "mfu", &metrics.mfu) || !Read(row, "memory_bytes", &metrics.memory_bytes) ||
      !Read(row, "resident_bytes", &metrics.resident_bytes) ||
      !Read(row, "checkpoint_stall_seconds", &metrics.checkpoint_stall_seconds) ||
      !Read(row, "checkpoint_write_seconds", &metrics.checkpoint_write_seconds) ||
      !Read(row, "checkpoint_bytes", &metrics.checkpoint_bytes) ||
      !Read(row, "checkpoint_error", &metrics.checkpoint_error) ||
      !Read(row, "epoch", &metrics.epoch) ||
      !Read(row, "validation_windows", &metrics.validation_windows) ||
      !Read(row, "run", &metrics.run)) {
    return absl::InvalidArgumentError("not a row of metrics");
  }
  return metrics;
}

absl::StatusOr<std::vector<StepMetrics>> ReadMetrics(const std::string& path) {
  // A device may have no end.
  std::error_code error;
  const bool is_file = std::filesystem::is_regular_file(path, error);
  std::ifstream file(path, std::ios::binary);
  if (!is_file || !file) return absl::NotFoundError(absl::StrCat(path, ": cannot be read"));
  std::ostringstream contents;
  contents << file.rdbuf();
  const std::string text = contents.str();
  std::vector<StepMetrics> rows;
  size_t begin = 0;
  for (size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', begin)) {
    const absl::StatusOr<StepMetrics> row = ParseMetricsJson(text.substr(begin, end - begin));
    if (!row.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ":", rows.size() + 1, ": ", std::string(row.status().message())));
    }
    rows.push_back(*row);
    begin = end + 1;
  }
  return rows;
}

}  // namespace planc
