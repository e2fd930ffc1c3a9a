#ifndef PLANC_RUNTIME_METRICS_METRICS_JSON_H_
#define PLANC_RUNTIME_METRICS_METRICS_JSON_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/metrics/step_metrics.h"

namespace planc {

// One JSON object, without a line end. Numbers that are not finite become null.
std::string MetricsJson(const StepMetrics& metrics);
// Errors: InvalidArgument when `line` is not such an object.
absl::StatusOr<StepMetrics> ParseMetricsJson(const std::string& line);
// All rows of a metrics.jsonl, in file order. A last line without a line end, which a stopped run
// may leave behind, is passed over. Errors: NotFound; InvalidArgument naming the line.
absl::StatusOr<std::vector<StepMetrics>> ReadMetrics(const std::string& path);

}  // namespace planc

#endif  // PLANC_RUNTIME_METRICS_METRICS_JSON_H_
