#include "planc/deadline_rule.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "planc/text.h"
#include "schemas/opcode.h"

namespace planc {
namespace {

constexpr char kKey[] = "run.stall_timeout";
constexpr double kFastestHost = 16;

std::string InstructionName(const Plan& plan, const StepSpan& span) {
  const Block& block = plan.blocks[span.block];
  std::string text =
      absl::StrCat(TraitsOf(block.instructions[span.instruction].opcode).text, " of ", block.name);
  if (span.layer >= 0) absl::StrAppend(&text, " layer ", span.layer);
  if (span.microbatch >= 0) absl::StrAppend(&text, " microbatch ", span.microbatch);
  return text;
}

}  // namespace

LongestWait LongestWaitOf(const Plan& plan, const StepPrediction& step) {
  LongestWait longest;
  for (size_t stage = 0; stage < step.stages.size(); ++stage) {
    std::vector<const StepSpan*> ends;
    for (const StepSpan& span : step.stages[stage]) ends.push_back(&span);
    std::stable_sort(ends.begin(), ends.end(),
                     [](const StepSpan* a, const StepSpan* b) { return a->end < b->end; });
    double before = 0;
    for (const StepSpan* span : ends) {
      if (span->end - before > longest.seconds) {
        longest = {span->end - before, static_cast<int>(stage), InstructionName(plan, *span)};
      }
      before = span->end;
    }
  }
  return longest;
}

double FastestOverCatalogue(const Plan& plan) {
  return plan.job.cluster().device() == "host" ? kFastestHost : 1;
}

void AddDeadlineFinding(const Plan& plan, const LoadResult* job, DiagnosticList* list) {
  const double timeout = static_cast<double>(plan.job.run().stall_timeout());
  const absl::StatusOr<Rates> rates = RatesOf(plan);
  if (timeout <= 0 || !rates.ok()) return;
  const absl::StatusOr<StepPrediction> step = PredictStep(plan, *rates);
  if (!step.ok()) return;
  const LongestWait wait = LongestWaitOf(plan, *step);
  if (timeout >= kDeadlineMargin * wait.seconds) return;
  const double least = wait.seconds / FastestOverCatalogue(plan);
  const bool hopeless = timeout < least;
  const std::string what =
      absl::StrCat(wait.instruction, " of stage ", wait.stage, ", for which nothing moves for ",
                   SecondsText(wait.seconds), " by prediction");
  Span span;
  if (job != nullptr) {
    const auto found = job->spec.origins.find(kKey);
    if (found != job->spec.origins.end() && found->second.line > 0) {
      const Origin& origin = found->second;
      span = {origin.file, origin.line, origin.column, origin.length};
    }
  }
  Diagnostic& finding = list->Add(
      hopeless ? DiagnosticCode::kStallTimeoutTooShort : DiagnosticCode::kStallTimeoutTight, span,
      absl::StrCat(
          kKey, " is ", SecondsText(timeout),
          hopeless ? ", and a rank would be taken for stalled while it is in " : ", not much for ",
          what));
  finding.label = kKey;
  finding.notes.push_back(
      plan.job.cluster().device() == "host"
          ? absl::StrCat("the prediction is for one small core of the device catalogue; even one ",
                         kFastestHost, " times as fast needs ", SecondsText(least))
          : std::string("the prediction is for the peak rates of the device catalogue: a lower "
                        "bound"));
  finding.fix = absl::StrCat(
      kKey, ": ", static_cast<int64_t>(std::ceil(kDeadlineMargin * wait.seconds)), "s, ",
      kDeadlineMargin, " times the prediction, or 0 to take it from the predicted step");
}

}  // namespace planc
