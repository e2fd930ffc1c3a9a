#include "runtime/metrics/progress.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace planc {
namespace {

// To the start of the line, and erase it.
constexpr char kRewrite[] = "\r\x1b[2K";

// Three digits: "0.812", "1.50", "41.2", "123", "1.23e+04".
std::string ThreeDigits(double value) {
  const double size = std::abs(value);
  if (size < 0.01 || !(size < 1000)) return absl::StrFormat("%.3g", value);
  const int decimals = size < 0.9995 ? 3 : size < 9.995 ? 2 : size < 99.95 ? 1 : 0;
  return absl::StrFormat("%.*f", decimals, value);
}

// "41.2k".
std::string RateText(double rate) {
  static constexpr const char* kUnits[] = {"", "k", "M", "G"};
  int unit = 0;
  while (rate >= 999.5 && unit < 3) {
    rate /= 1000;
    ++unit;
  }
  return absl::StrCat(ThreeDigits(rate), kUnits[unit]);
}

std::string LossText(double loss) {
  return std::abs(loss) < 1000 ? absl::StrFormat("%.4f", loss) : absl::StrFormat("%.3e", loss);
}

}  // namespace

std::string DurationText(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return "?";
  const int64_t s = std::llround(seconds);
  if (s < 60) return absl::StrFormat("%ds", s);
  if (s < 3600) return absl::StrFormat("%dm%02ds", s / 60, s % 60);
  if (s < 86400) return absl::StrFormat("%dh%02dm", s / 3600, s / 60 % 60);
  return absl::StrFormat("%dd%02dh", s / 86400, s / 3600 % 24);
}

std::string ProgressLine(const StepMetrics& metrics, int64_t steps) {
  const std::string total = absl::StrCat(steps);
  std::string line = absl::StrFormat("step %*d/%s  loss %s", static_cast<int>(total.size()),
                                     metrics.step, total, LossText(metrics.loss));
  if (metrics.validation_loss.has_value()) {
    absl::StrAppend(&line, "  valid ", LossText(*metrics.validation_loss));
  } else {
    absl::StrAppendFormat(&line, "  grad %s  lr %.2e", ThreeDigits(metrics.grad_norm), metrics.lr);
  }
  absl::StrAppend(&line, "  ", RateText(metrics.tokens_per_second), " tok/s");
  if (metrics.mfu.has_value()) absl::StrAppendFormat(&line, "  mfu %.1f%%", *metrics.mfu * 100);
  const double left = static_cast<double>(steps - metrics.step) * metrics.step_seconds;
  if (metrics.step < steps) absl::StrAppend(&line, "  eta ", DurationText(left));
  return line;
}

Progress::Progress(std::ostream& out, bool terminal, int64_t steps)
    : out_(out), terminal_(terminal), steps_(steps) {}

Progress::~Progress() {
  if (live_) out_ << std::endl;
}

void Progress::Show(const StepMetrics& metrics) {
  const std::string line = ProgressLine(metrics, steps_);
  if (!terminal_) {
    out_ << line << std::endl;
  } else if (metrics.validation_loss.has_value()) {
    Note(line);  // worth keeping
  } else {
    out_ << kRewrite << line << std::flush;
    live_ = true;
  }
}

void Progress::Note(const std::string& line) {
  out_ << (live_ ? kRewrite : "") << line << std::endl;
  live_ = false;
}

}  // namespace planc
