#include "runtime/metrics/loss_curve.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "runtime/metrics/append_file.h"
#include "runtime/metrics/metrics_json.h"
#include "schemas/status.h"

namespace planc {
namespace {

using Points = std::vector<std::pair<double, double>>;  // step, loss

// Picture and plot area, in pixels.
constexpr double kWidth = 760;
constexpr double kHeight = 440;
constexpr double kLeft = 64;
constexpr double kRight = 20;
constexpr double kTop = 44;
constexpr double kBottom = 52;
constexpr char kTrainColor[] = "#7aa6d6";
constexpr char kValidationColor[] = "#c0392b";
constexpr char kInk[] = "#333333";
constexpr char kGrid[] = "#e2e2e2";
// More points than this are thinned out by averaging neighbours: no screen shows more.
constexpr size_t kMaximumPoints = 2000;

// A range of values and the round numbers that are marked in it.
struct Scale {
  double low = 0;
  double high = 1;
  double tick = 0.2;
};

// The 1-2-5 step that divides `span` into at most `most` parts.
double RoundTick(double span, int most) {
  const double rough = span / most;
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough * (1 - 1e-9)) return factor * power;
  }
  return 10 * power;
}

Scale ScaleFor(double low, double high, int most) {
  if (!(high > low)) high = low + 1;
  Scale scale;
  scale.tick = RoundTick(high - low, most);
  scale.low = std::floor(low / scale.tick + 1e-9) * scale.tick;
  scale.high = std::ceil(high / scale.tick - 1e-9) * scale.tick;
  return scale;
}

std::string Escape(const std::string& text) {
  return absl::StrReplaceAll(text, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}});
}

class Picture {
 public:
  Picture(const Scale& x, const Scale& y) : x_(x), y_(y) {}

  void Begin(const std::string& title) {
    absl::StrAppendFormat(
        &svg_,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%g\" height=\"%g\" "
        "viewBox=\"0 0 %g %g\" font-family=\"sans-serif\" font-size=\"12\" fill=\"%s\">\n"
        "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
        kWidth, kHeight, kWidth, kHeight, kInk);
    Text(kLeft, 26, "start", Escape(title), " font-size=\"16\"");
  }

  void Axes() {
    for (double value = y_.low; value <= y_.high + y_.tick / 2; value += y_.tick) {
      Line(kLeft, Y(value), kWidth - kRight, Y(value), kGrid);
      Text(kLeft - 8, Y(value) + 4, "end", Number(value));
    }
    for (double value = x_.low; value <= x_.high + x_.tick / 2; value += x_.tick) {
      Line(X(value), kHeight - kBottom, X(value), kHeight - kBottom + 5, kInk);
      Text(X(value), kHeight - kBottom + 20, "middle", Number(value));
    }
    Line(kLeft, kTop, kLeft, kHeight - kBottom, kInk);
    Line(kLeft, kHeight - kBottom, kWidth - kRight, kHeight - kBottom, kInk);
    Text((kLeft + kWidth - kRight) / 2, kHeight - 12, "middle", "step");
    const double middle = (kTop + kHeight - kBottom) / 2;
    Text(18, middle, "middle", "loss (nats per token)",
         absl::StrFormat(" transform=\"rotate(-90 18 %g)\"", middle));
  }

  void Curve(const Points& points, const std::string& color, bool marks) {
    std::string path;
    for (const auto& [x, y] : points) absl::StrAppendFormat(&path, "%.1f,%.1f ", X(x), Y(y));
    if (!path.empty()) path.pop_back();
    absl::StrAppendFormat(&svg_,
                          "<polyline points=\"%s\" fill=\"none\" stroke=\"%s\" "
                          "stroke-width=\"1.5\" stroke-linejoin=\"round\"/>\n",
                          path, color);
    if (!marks) return;
    for (const auto& [x, y] : points) {
      absl::StrAppendFormat(&svg_, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"%s\"/>\n", X(x),
                            Y(y), color);
    }
  }

  void Legend(int row, const std::string& color, const std::string& text) {
    const double y = kTop + 16 + row * 18;
    Line(kWidth - 240, y, kWidth - 214, y, color);
    Text(kWidth - 206, y + 4, "start", text);
  }

  std::string End() && { return absl::StrCat(svg_, "</svg>\n"); }

 private:
  double X(double value) const {
    return kLeft + (value - x_.low) / (x_.high - x_.low) * (kWidth - kLeft - kRight);
  }
  double Y(double value) const {
    return kHeight - kBottom - (value - y_.low) / (y_.high - y_.low) * (kHeight - kTop - kBottom);
  }
  // Ticks are multiples of 1, 2 or 5; rounding hides what repeated addition leaves of 0.1.
  std::string Number(double value) const {
    return absl::StrFormat("%.6g", std::abs(value) < y_.tick * 1e-6 ? 0.0 : value);
  }
  void Line(double x1, double y1, double x2, double y2, const std::string& color) {
    absl::StrAppendFormat(&svg_,
                          "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\"/>\n",
                          x1, y1, x2, y2, color);
  }
  void Text(double x, double y, const std::string& anchor, const std::string& text,
            const std::string& more = "") {
    absl::StrAppendFormat(&svg_, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\"%s>%s</text>\n", x,
                          y, anchor, more, text);
  }

  const Scale x_;
  const Scale y_;
  std::string svg_;
};

Points Thinned(const Points& points) {
  const size_t group = (points.size() + kMaximumPoints - 1) / kMaximumPoints;
  if (group <= 1) return points;
  Points thinned;
  for (size_t begin = 0; begin < points.size(); begin += group) {
    const size_t end = std::min(points.size(), begin + group);
    double step = 0;
    double loss = 0;
    for (size_t i = begin; i < end; ++i) {
      step += points[i].first;
      loss += points[i].second;
    }
    const double count = static_cast<double>(end - begin);
    thinned.emplace_back(step / count, loss / count);
  }
  return thinned;
}

}  // namespace

std::string LossCurveSvg(const std::vector<StepMetrics>& rows, const std::string& title) {
  Points train;
  Points validation;
  for (const StepMetrics& row : rows) {
    const double step = static_cast<double>(row.step);
    if (std::isfinite(row.loss)) train.emplace_back(step, row.loss);
    if (row.validation_loss.has_value()) validation.emplace_back(step, *row.validation_loss);
  }
  double low = INFINITY;
  double high = -INFINITY;
  double last = 0;
  for (const Points* points : {&train, &validation}) {
    for (const auto& [step, loss] : *points) {
      low = std::min(low, loss);
      high = std::max(high, loss);
      last = std::max(last, step);
    }
  }
  if (!(low <= high)) low = high = 0;  // nothing to show
  Picture picture(ScaleFor(0, last, 10), ScaleFor(low, high, 8));
  picture.Begin(title);
  picture.Axes();
  picture.Curve(Thinned(train), kTrainColor, false);
  picture.Curve(validation, kValidationColor, true);
  int row = 0;
  if (!train.empty()) {
    picture.Legend(row++, kTrainColor, absl::StrFormat("training, last %.4f", train.back().second));
  }
  if (!validation.empty()) {
    picture.Legend(row, kValidationColor,
                   absl::StrFormat("validation, last %.4f", validation.back().second));
  }
  return std::move(picture).End();
}

absl::Status WriteLossCurve(const std::string& directory, const std::string& title) {
  PLANC_ASSIGN_OR_RETURN(const std::vector<StepMetrics> rows,
                         ReadMetrics(absl::StrCat(directory, "/metrics.jsonl")));
  return ReplaceFile(absl::StrCat(directory, "/loss.svg"), LossCurveSvg(rows, title));
}

}  // namespace planc
