#ifndef PLANC_RUNTIME_METRICS_LOSS_CURVE_H_
#define PLANC_RUNTIME_METRICS_LOSS_CURVE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "runtime/metrics/step_metrics.h"

namespace planc {

// An SVG picture of training and validation loss over steps, with axes, labels and a legend.
std::string LossCurveSvg(const std::vector<StepMetrics>& rows, const std::string& title);

// Reads `directory`/metrics.jsonl and writes `directory`/loss.svg. Errors: as ReadMetrics; Internal
// naming the path.
absl::Status WriteLossCurve(const std::string& directory, const std::string& title);

}  // namespace planc

#endif  // PLANC_RUNTIME_METRICS_LOSS_CURVE_H_
