// The predicted step as text: per stage one line of forward, one of backward and one of the rest.
#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "planc/show/show.h"
#include "planc/text.h"
#include "schemas/counted.h"

namespace planc {
namespace {

constexpr int kBins = 80;
constexpr size_t kStagesShown = 8;  // at each end, when there are more than twice as many
constexpr char kDigits[] = "0123456789abcdefghijklmnopqrstuvwxyz";
constexpr int kDigitCount = 36;

// Line of the picture that an instruction belongs to, and its character there.
struct Mark {
  int line = -1;  // 0 forward, 1 backward, 2 the rest; -1 not drawn
  char letter = '.';
};

Mark MarkOf(const Instruction& instruction, int microbatch) {
  const char digit = microbatch < 0 ? '*' : kDigits[microbatch % kDigitCount];
  switch (instruction.label) {
    case Label::kForward:
      return {0, digit};
    case Label::kBackward:
    case Label::kRecompute:
      return {1, digit};
    case Label::kGradientSync:
      return {2, 's'};
    case Label::kOptimizer:
      return {2, 'o'};
    case Label::kParameterGather:
      return {2, 'g'};
    case Label::kPipeline:
      return {2, 'p'};
    case Label::kInit:
    case Label::kData:
      return {};
  }
  return {};
}

// One line of bins; each shows what took most of its time.
class Line {
 public:
  void Add(char letter, double begin, double end) {
    const int first = std::clamp(static_cast<int>(begin), 0, kBins - 1);
    const int last = std::clamp(static_cast<int>(end), 0, kBins - 1);
    for (int bin = first; bin <= last; ++bin) {
      const double part = std::min(end, bin + 1.0) - std::max(begin, 1.0 * bin);
      if (part > 0) time_[bin][static_cast<unsigned char>(letter)] += part;
    }
  }

  std::string Text() const {
    std::string text;
    for (int bin = 0; bin < kBins; ++bin) {
      const auto most = std::max_element(time_[bin].begin(), time_[bin].end());
      text += *most > 0 ? static_cast<char>(most - time_[bin].begin()) : '.';
    }
    return text;
  }

 private:
  std::array<std::array<double, 128>, kBins> time_{};
};

struct StagePicture {
  std::array<Line, 3> lines;
  double compute_seconds = 0;
};

StagePicture Draw(const Plan& plan, const std::vector<StepSpan>& spans, double seconds) {
  StagePicture picture;
  const double scale = seconds > 0 ? kBins / seconds : 0;
  for (const StepSpan& span : spans) {
    const Instruction& instruction = plan.blocks[span.block].instructions[span.instruction];
    if (instruction.stream == Stream::kCompute) picture.compute_seconds += span.end - span.begin;
    const Mark mark = MarkOf(instruction, span.microbatch);
    if (mark.line < 0) continue;
    picture.lines[mark.line].Add(mark.letter, span.begin * scale, span.end * scale);
  }
  return picture;
}

void AppendStage(const Plan& plan, const StepPrediction& schedule, size_t stage,
                 ShowSection* section) {
  const StagePicture picture = Draw(plan, schedule.stages[stage], schedule.seconds);
  const double busy = schedule.seconds > 0 ? picture.compute_seconds / schedule.seconds : 0;
  static constexpr const char* kNames[] = {"forward", "backward", "rest"};
  absl::StrAppendFormat(&section->text, "  stage %d, compute busy %.1f%%\n", stage, 100 * busy);
  for (int line = 0; line < 3; ++line) {
    absl::StrAppendFormat(&section->text, "    %-9s|%s|\n", kNames[line],
                          picture.lines[line].Text());
  }
}

}  // namespace

ShowSection ShowTimeline(const ShowInput& input) {
  ShowSection section{"timeline", "", nlohmann::ordered_json::object()};
  if (!input.schedule.ok()) {
    section.text =
        absl::StrCat("  no prediction: ", std::string(input.schedule.status().message()), "\n");
    section.data["error"] = std::string(input.schedule.status().message());
    return section;
  }
  const StepPrediction& schedule = *input.schedule;
  absl::StrAppend(
      &section.text, "  ", SecondsText(schedule.seconds), " from left to right, ",
      SecondsText(schedule.seconds / kBins),
      " a character, at catalogue peak rates (not calibrated)\n"
      "  digits are microbatches (base 36, then again from 0); . idle; s gradient sync,\n"
      "  o optimizer, g parameter gather, p pipeline transfer (with the wait for the neighbour)\n");
  const size_t stages = schedule.stages.size();
  const size_t only = input.rank >= 0 ? ClassOfRank(input.plan, input.rank).stage : 0;
  for (size_t stage = 0; stage < stages; ++stage) {
    if (input.rank >= 0 && stage != only) continue;
    if (input.rank < 0 && stages > 2 * kStagesShown && stage == kStagesShown) {
      absl::StrAppend(&section.text, "  ... ", Counted(stages - 2 * kStagesShown, "more stage"),
                      " ...\n");
      stage = stages - kStagesShown;
    }
    AppendStage(input.plan, schedule, stage, &section);
  }
  section.data["step_seconds_at_peak"] = schedule.seconds;
  for (const std::vector<StepSpan>& spans : schedule.stages) {
    double busy = 0;
    for (const StepSpan& span : spans) {
      const Block& block = input.plan.blocks[span.block];
      if (block.instructions[span.instruction].stream == Stream::kCompute) {
        busy += span.end - span.begin;
      }
    }
    section.data["compute_seconds"].push_back(busy);
  }
  return section;
}

}  // namespace planc
