#include "planc/command/plan_page.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "planc/text.h"

namespace planc {
namespace {

constexpr double kWidth = 1200;
constexpr double kRowHeight = 22;
constexpr double kLeft = 70;
constexpr size_t kMostBoxes = 20000;
constexpr size_t kLabelCount = 9;

std::string Escape(const std::string& text) {
  return absl::StrReplaceAll(text, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}});
}

const char* ColourOf(Label label) {
  switch (label) {
    case Label::kForward:
      return "#4c8bf5";
    case Label::kBackward:
      return "#f28e2b";
    case Label::kRecompute:
      return "#edc948";
    case Label::kGradientSync:
      return "#b07aa1";
    case Label::kOptimizer:
      return "#59a14f";
    case Label::kParameterGather:
      return "#76b7b2";
    case Label::kPipeline:
      return "#9c755f";
    case Label::kInit:
    case Label::kData:
      return "#bab0ac";
  }
  return "#bab0ac";
}

// Neighbouring instructions of the compute stream with one label and microbatch.
struct Box {
  Label label = Label::kForward;
  int32_t microbatch = -1;
  double begin = 0;
  double end = 0;
};

std::vector<Box> BoxesOf(const Plan& plan, const std::vector<StepSpan>& spans) {
  std::vector<Box> boxes;
  for (const StepSpan& span : spans) {
    const Instruction& instruction = plan.blocks[span.block].instructions[span.instruction];
    if (instruction.stream != Stream::kCompute || span.end <= span.begin) continue;
    const bool joins = !boxes.empty() && boxes.back().label == instruction.label &&
                       boxes.back().microbatch == span.microbatch && boxes.back().end >= span.begin;
    if (!joins) {
      boxes.push_back({instruction.label, span.microbatch, span.begin, span.end});
    }
    boxes.back().end = span.end;
  }
  return boxes;
}

// `boxes` of a step of `seconds` in `slices` equal slices of time: each shows what takes most of
// it, or nothing where the stage idles most of it. At most as many boxes as slices.
std::vector<Box> Sliced(const std::vector<Box>& boxes, double seconds, size_t slices) {
  std::vector<Box> result;
  const double width = seconds / static_cast<double>(slices);
  size_t first = 0;                        // the first box that may reach into the slice
  std::array<double, kLabelCount> time{};  // less what was shown for it
  for (size_t slice = 0; slice < slices; ++slice) {
    const double begin = width * static_cast<double>(slice);
    const double end = begin + width;
    int32_t microbatch = -1;
    size_t overlapping = 0;
    double busy = 0;
    while (first < boxes.size() && boxes[first].end <= begin) ++first;
    for (size_t i = first; i < boxes.size() && boxes[i].begin < end; ++i) {
      const double part = std::min(end, boxes[i].end) - std::max(begin, boxes[i].begin);
      time[static_cast<size_t>(boxes[i].label)] += part;
      busy += part;
      microbatch = ++overlapping == 1 ? boxes[i].microbatch : -1;
    }
    if (busy < width / 2) continue;
    const auto most = std::max_element(time.begin(), time.end());
    *most -= busy;
    const Label label = static_cast<Label>(most - time.begin());
    const bool joins = !result.empty() && result.back().label == label &&
                       result.back().microbatch == microbatch && result.back().end >= begin;
    if (!joins) result.push_back({label, microbatch, begin, end});
    result.back().end = end;
  }
  return result;
}

std::string TimelinePicture(const Plan& plan, const StepPrediction& schedule) {
  const double scale = schedule.seconds > 0 ? (kWidth - kLeft) / schedule.seconds : 0;
  std::string svg = absl::StrFormat(
      "<svg viewBox=\"0 0 %.0f %.0f\" width=\"100%%\" font-family=\"monospace\" "
      "font-size=\"11\">\n",
      kWidth, kRowHeight * static_cast<double>(schedule.stages.size()) + 4);
  // The same share of the boxes for every stage, so that none looks idle because it comes late.
  const size_t share = kMostBoxes / std::max<size_t>(schedule.stages.size(), 1);
  size_t sliced = 0;
  for (size_t stage = 0; stage < schedule.stages.size(); ++stage) {
    const double top = kRowHeight * static_cast<double>(stage);
    absl::StrAppendFormat(&svg, "<text x=\"0\" y=\"%.1f\">stage %d</text>\n", top + 15, stage);
    std::vector<Box> boxes = BoxesOf(plan, schedule.stages[stage]);
    if (boxes.size() > share) {
      boxes = Sliced(boxes, schedule.seconds, std::max<size_t>(share, 1));
      ++sliced;
    }
    for (const Box& box : boxes) {
      absl::StrAppendFormat(
          &svg, "<rect x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"18\" fill=\"%s\"><title>",
          kLeft + box.begin * scale, top + 2, std::max(0.2, (box.end - box.begin) * scale),
          ColourOf(box.label));
      absl::StrAppend(&svg, LabelName(box.label),
                      box.microbatch >= 0 ? absl::StrCat(" mb ", box.microbatch) : "", ", ",
                      SecondsText(box.end - box.begin), "</title></rect>\n");
    }
  }
  absl::StrAppend(&svg, "</svg>\n");
  if (sliced > 0) {
    absl::StrAppend(&svg, "<p>", sliced, " of ", schedule.stages.size(),
                    " stages have too many spans to draw each: they are drawn in ", share,
                    " slices of time, by what takes most of each. --format=trace has all.</p>\n");
  }
  return svg;
}

std::string Legend() {
  std::string html = "<p>";
  for (Label label : {Label::kForward, Label::kBackward, Label::kRecompute, Label::kOptimizer,
                      Label::kGradientSync, Label::kParameterGather}) {
    absl::StrAppend(&html, "<span style=\"background:", ColourOf(label), "\">&nbsp;&nbsp;</span> ",
                    LabelName(label), " &nbsp; ");
  }
  return html + "</p>\n";
}

}  // namespace

std::string PlanPage(const ShowInput& input, const std::vector<ShowSection>& sections) {
  const std::string name = Escape(input.plan.job.job());
  std::string html = absl::StrCat(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>plan of ", name,
      "</title>\n<style>body{font-family:sans-serif;margin:2em;max-width:80em}"
      "pre{background:#f6f6f6;padding:1em;overflow-x:auto}</style></head>\n<body><h1>",
      name, "</h1>\n<p>plan <code>", input.hash, "</code></p>\n");
  if (input.schedule.ok()) {
    absl::StrAppend(&html, "<h2>predicted step: at least ", SecondsText(input.schedule->seconds),
                    "</h2>\n<p>Compute stream of one rank of each stage, at catalogue peak rates "
                    "(not calibrated).</p>\n",
                    Legend(), TimelinePicture(input.plan, *input.schedule));
  }
  for (const ShowSection& section : sections) {
    absl::StrAppend(&html, "<h2>", section.name, "</h2>\n<pre>", Escape(section.text), "</pre>\n");
  }
  absl::StrAppend(&html, "<h2>not modelled</h2>\n<pre>");
  for (const std::string& line : NotModelled(input.plan)) {
    absl::StrAppend(&html, Escape(line), "\n");
  }
  return html + "</pre>\n</body></html>\n";
}

}  // namespace planc
