// planc plan: compile, verify, print.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "compiler/diagnostics/render_text.h"
#include "planc/command/plan_page.h"
#include "planc/commands.h"
#include "planc/device_notice.h"
#include "planc/exit_codes.h"
#include "planc/flags.h"
#include "planc/load_plan.h"
#include "planc/open_files_notice.h"
#include "planc/show/show.h"
#include "planc/text.h"
#include "runtime/launch/descriptor_limit.h"

namespace planc {
namespace {

constexpr int kShowVersion = 1;  // of the JSON output

struct Options {
  std::string input;
  std::string output;
  std::vector<std::string> sets;
  std::vector<std::string> show;
  std::string format;
  int64_t rank = -1;
};

absl::StatusOr<Options> ReadOptions(const std::vector<std::string>& args) {
  const absl::StatusOr<Flags> flags = ParseFlags("plan", args);
  if (!flags.ok()) return flags.status();
  if (flags->positional.size() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("one job or plan file is needed, ", flags->positional.size(), " are named"));
  }
  Options options;
  options.input = flags->positional[0];
  options.output = flags->Get("--output");
  options.sets = flags->All("--set");
  options.show = flags->List("--show");
  options.format = flags->Get("--format");
  const std::string rank = flags->Get("--rank");
  if (flags->Has("--rank") && (!absl::SimpleAtoi(rank, &options.rank) || options.rank < 0)) {
    return absl::InvalidArgumentError(absl::StrCat("--rank `", rank, "` is not a rank number"));
  }
  return options;
}

void PrintText(const Options& options, const ShowInput& input, std::ostream& out) {
  const bool colour = ShowsColour(out);
  const auto title = [&](const std::string& name) {
    out << (colour ? "\x1b[1m" : "") << name << (colour ? "\x1b[0m" : "") << "\n";
  };
  for (const std::string& name : options.show) {
    title(name);
    out << MakeSection(name, input).text << "\n";
  }
  title("not modelled");
  for (const std::string& line : NotModelled(input.plan)) out << "  " << line << "\n";
}

nlohmann::ordered_json JsonOf(const Options& options, const ShowInput& input) {
  nlohmann::ordered_json json = {
      {"format", "planc-show"}, {"version", kShowVersion}, {"plan", input.hash}};
  for (const std::string& name : options.show) {
    json["sections"][name] = MakeSection(name, input).data;
  }
  json["not_modelled"] = NotModelled(input.plan);
  return json;
}

int Print(const Options& options, const ShowInput& input, std::ostream& out, std::ostream& err) {
  if (options.format == "json") {
    out << JsonText(JsonOf(options, input), 2);
  } else if (options.format == "html") {
    std::vector<ShowSection> sections;
    for (const std::string& name : options.show) sections.push_back(MakeSection(name, input));
    out << PlanPage(input, sections);
  } else if (options.format == "trace") {
    if (!input.schedule.ok()) {
      err << "planc plan: " << input.schedule.status().message() << "\n";
      return kExitInternal;
    }
    out << JsonText(TraceOf(input.plan, *input.schedule), -1);
  } else {
    PrintText(options, input, out);
  }
  return kExitOk;
}

absl::StatusOr<StepPrediction> Predict(const Plan& plan) {
  const absl::StatusOr<Rates> rates = RatesOf(plan);
  if (!rates.ok()) return rates.status();
  return PredictStep(plan, *rates);
}

}  // namespace

int RunPlan(const std::vector<std::string>& args, std::ostream& out, std::ostream& err) {
  const absl::StatusOr<Options> options = ReadOptions(args);
  if (!options.ok()) return UsageError("plan", options.status(), err);
  LoadedPlan loaded;
  const int code = LoadPlan("planc plan", options->input, options->sets, err, &loaded);
  if (code != kExitOk) return code;
  if (loaded.job.has_value()) {
    DiagnosticList notices;
    AddDeviceNotice(*loaded.job, &notices);
    AddOpenFilesNotice(loaded.plan, *loaded.job, HighestDescriptorLimit(), &notices);
    err << RenderText(notices, loaded.job->sources, ShowsColour(err));
  }
  const int64_t world = loaded.plan.mesh.WorldSize();
  if (options->rank >= world) {
    return UsageError("plan",
                      absl::StrCat("--rank ", options->rank,
                                   " does not exist: the plan has ranks 0 to ", world - 1),
                      err);
  }
  if (!options->output.empty()) {
    const absl::StatusOr<std::string> bytes = SerializePlan(loaded.plan);
    const absl::Status written = bytes.ok() ? WriteFile(options->output, *bytes) : bytes.status();
    if (!written.ok()) {
      err << "planc plan: " << written.message() << "\n";
      return ExitCodeOf(written);
    }
  }
  const ShowInput input{loaded.plan, loaded.hash, loaded.certificate, Predict(loaded.plan),
                        options->rank};
  return Print(*options, input, out, err);
}

}  // namespace planc
