// The predicted step in the Trace Event Format that Chrome and Perfetto read.
#include <string>

#include "absl/strings/str_cat.h"
#include "planc/show/show.h"

namespace planc {

nlohmann::ordered_json TraceOf(const Plan& plan, const StepPrediction& schedule) {
  nlohmann::ordered_json events = nlohmann::ordered_json::array();
  for (size_t stage = 0; stage < schedule.stages.size(); ++stage) {
    events.push_back({{"ph", "M"},
                      {"name", "process_name"},
                      {"pid", stage},
                      {"args", {{"name", absl::StrCat("stage ", stage)}}}});
    for (int stream = 0; stream < kStreamCount; ++stream) {
      events.push_back({{"ph", "M"},
                        {"name", "thread_name"},
                        {"pid", stage},
                        {"tid", stream},
                        {"args", {{"name", StreamName(static_cast<Stream>(stream))}}}});
    }
    for (const StepSpan& span : schedule.stages[stage]) {
      const Block& block = plan.blocks[span.block];
      const Instruction& instruction = block.instructions[span.instruction];
      nlohmann::ordered_json args = {{"block", block.name}, {"index", span.instruction}};
      if (span.layer >= 0) args["layer"] = span.layer;
      if (span.microbatch >= 0) args["microbatch"] = span.microbatch;
      if (instruction.cost.flops > 0) args["flops"] = instruction.cost.flops;
      if (instruction.cost.bytes_sent > 0) args["bytes_sent"] = instruction.cost.bytes_sent;
      events.push_back({{"ph", "X"},
                        {"name", TraitsOf(instruction.opcode).text},
                        {"cat", LabelName(instruction.label)},
                        {"pid", stage},
                        {"tid", static_cast<int>(instruction.stream)},
                        {"ts", span.begin * 1e6},
                        {"dur", (span.end - span.begin) * 1e6},
                        {"args", std::move(args)}});
    }
  }
  return {{"displayTimeUnit", "ms"}, {"traceEvents", std::move(events)}};
}

}  // namespace planc
