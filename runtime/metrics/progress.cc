#include "runtime/metrics/progress.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

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
  return ProgressLine(metrics, steps, metrics.step_seconds, std::numeric_limits<int>::max());
}

std::string ProgressLine(const StepMetrics& metrics, int64_t steps, double seconds_per_step,
                         int columns) {
  const std::string total = absl::StrCat(steps);
  // In the order of the line; those with the lowest `worth` go first.
  struct Piece {
    std::string text;
    int worth;
  };
  std::vector<Piece> pieces = {
      {absl::StrFormat("step %*d/%s", static_cast<int>(total.size()), metrics.step, total), 9},
      {absl::StrCat("loss ", LossText(metrics.loss)), 8}};
  if (metrics.validation_loss.has_value()) {
    pieces.push_back({absl::StrCat("valid ", LossText(*metrics.validation_loss)), 6});
  } else {
    pieces.push_back({absl::StrCat("grad ", ThreeDigits(metrics.grad_norm)), 4});
    pieces.push_back({absl::StrFormat("lr %.2e", metrics.lr), 2});
  }
  pieces.push_back({absl::StrCat(RateText(metrics.tokens_per_second), " tok/s"), 5});
  if (metrics.mfu.has_value())
    pieces.push_back({absl::StrFormat("mfu %.1f%%", *metrics.mfu * 100), 3});
  if (metrics.step < steps) {
    const double left = static_cast<double>(steps - metrics.step) * seconds_per_step;
    pieces.push_back({absl::StrCat("eta ", DurationText(left)), 7});
  }
  const auto join = [&] {
    return absl::StrJoin(pieces, "  ", [](std::string* out, const Piece& piece) {
      absl::StrAppend(out, piece.text);
    });
  };
  while (pieces.size() > 1 && join().size() > static_cast<size_t>(columns)) {
    pieces.erase(std::min_element(pieces.begin(), pieces.end(), [](const Piece& a, const Piece& b) {
      return a.worth < b.worth;
    }));
  }
  return join().substr(0, columns);
}

void StepPace::Add(int64_t step, double step_seconds, absl::Time now) {
  constexpr double kSteps = 30;  // that an average is made of, roughly
  const int64_t steps = step - step_.value_or(step);
  if (step_.has_value() && steps <= 0) return;  // a row that was shown again
  if (counted_ == 0) {
    step_seconds_ = step_seconds;
  } else {
    step_seconds_ +=
        (step_seconds - step_seconds_) * -std::expm1(-static_cast<double>(steps) / kSteps);
  }
  if (step_.has_value()) {
    counted_ += steps;
    const double passed = absl::ToDoubleSeconds(now - when_);
    outside_seconds_ += std::max(0.0, passed - static_cast<double>(steps) * step_seconds);
  }
  step_ = step;
  when_ = now;
}

double StepPace::SecondsPerStep() const {
  if (counted_ == 0) return step_seconds_;
  return step_seconds_ + outside_seconds_ / static_cast<double>(counted_);
}

Progress::Progress(std::ostream& out, bool terminal, int64_t steps, ColumnsFunction columns)
    : out_(out), terminal_(terminal), steps_(steps), columns_(std::move(columns)) {}

Progress::~Progress() {
  if (live_) out_ << std::endl;
}

void Progress::Show(const StepMetrics& metrics, absl::Time now) {
  pace_.Add(metrics.step, metrics.step_seconds, now);
  // A line that fills the last column may scroll.
  const int columns = terminal_ && columns_ != nullptr ? columns_() - 1 : 0;
  const std::string line = ProgressLine(metrics, steps_, pace_.SecondsPerStep(),
                                        columns > 0 ? columns : std::numeric_limits<int>::max());
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
