// planc status: how a run is doing, from the files that it keeps.
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "nlohmann/json.hpp"
#include "planc/command/run_view.h"
#include "planc/commands.h"
#include "planc/flags.h"
#include "planc/text.h"
#include "runtime/launch/launch.h"
#include "runtime/metrics/progress.h"

namespace planc {
namespace {

using Json = nlohmann::ordered_json;

constexpr absl::Duration kGlance = absl::Milliseconds(500);

int Usage(const std::string& problem, std::ostream& err) {
  return UsageError("status", problem, err);
}

std::string OwnerLine(const RunView& view) {
  const std::string who = view.lock.owner.has_value() ? OwnerText(*view.lock.owner) : "unknown";
  switch (view.lock.state) {
    case OwnerState::kNone:
      return "none: the last one has ended";
    case OwnerState::kAlive:
      return absl::StrCat(who, ", alive");
    case OwnerState::kDead:
      return absl::StrCat(who, ", dead: a stale lock, which the next start takes over");
    case OwnerState::kElsewhere:
      return absl::StrCat(who, ", not to be seen from here");
  }
  return "?";
}

std::string StatusText(const RunView& view) {
  const RunRecord& record = view.record;
  const int64_t steps = record.job.run().steps();
  std::string text;
  const auto add = [&text](const std::string& name, const std::string& value) {
    absl::StrAppend(
        &text, Wrap(absl::StrCat("  ", name, std::string(13 - name.size(), ' '), value), 13), "\n");
  };
  absl::StrAppend(&text, "run ", record.id, " of job ", record.job.job(), "\n");
  add("state", record.exit_code.has_value()
                   ? absl::StrCat(view.State(), ", exit code ", *record.exit_code)
                   : view.State());
  add("step", absl::StrCat(view.step, " of ", steps));
  if (view.last.has_value()) {
    const StepMetrics& row = *view.last;
    add("loss", absl::StrFormat("%.4f after step %d", row.loss, row.step));
    add("speed", absl::StrFormat("%.4g tokens/s, %s a step", row.tokens_per_second,
                                 SecondsText(row.step_seconds)));
    if (view.State() == "running" && view.step < steps) {
      add("eta", DurationText(static_cast<double>(steps - view.step) * row.step_seconds));
    }
  }
  add("checkpoint", view.checkpoint.empty() ? "none" : view.checkpoint);
  for (const WayBack& way : record.ways_back) {
    add("went back", absl::StrCat("to step ", way.point.step, ", ", way.path));
  }
  add("began", absl::StrCat(record.began, ", started ", record.starts,
                            record.starts == 1 ? " time" : " times"));
  add("owner", OwnerLine(view));
  return text;
}

Json StatusJson(const RunView& view) {
  const RunRecord& record = view.record;
  Json json = {{"id", record.id},
               {"job", record.job.job()},
               {"directory", view.directory},
               {"state", view.State()},
               {"exit_code", nullptr},
               {"step", view.step},
               {"steps", record.job.run().steps()},
               {"loss", nullptr},
               {"tokens_per_second", nullptr},
               {"step_seconds", nullptr},
               {"checkpoint", view.checkpoint},
               {"began", record.began},
               {"starts", record.starts},
               {"owner", OwnerLine(view)}};
  json["ways_back"] = Json::array();
  for (const WayBack& way : record.ways_back) json["ways_back"].push_back(way.point.step);
  if (record.exit_code.has_value()) json["exit_code"] = *record.exit_code;
  if (view.last.has_value()) {
    json["loss"] = view.last->loss;
    json["tokens_per_second"] = view.last->tokens_per_second;
    json["step_seconds"] = view.last->step_seconds;
  }
  return json;
}

// Shows each new row until the run ends, and returns its exit code. A heartbeat that stands still
// for as long as a start would watch it is that of a dead owner.
int Follow(const std::string& directory, const std::string& host, std::ostream& out,
           std::ostream& err) {
  std::string beat;
  absl::Time moved = absl::Now();
  int64_t shown = -1;
  while (true) {
    const absl::StatusOr<RunView> view = ViewRun(directory, host);
    if (!view.ok()) return Usage(std::string(view.status().message()), err);
    if (view->last.has_value() && view->last->step != shown && shown >= 0) {
      out << ProgressLine(*view->last, view->record.job.run().steps()) << std::endl;
    }
    shown = view->last.has_value() ? view->last->step : 0;
    if (view->record.state != RunState::kRunning) {
      out << StatusText(*view) << std::flush;
      return static_cast<int>(view->record.exit_code.value_or(kExitInternal));
    }
    if (view->lock.text != beat) {
      beat = view->lock.text;
      moved = absl::Now();
    }
    const bool silent =
        view->lock.state == OwnerState::kElsewhere && absl::Now() - moved > RunLockOptions().watch;
    if (view->State() == "gone" || silent) {
      out << StatusText(*view) << std::flush;
      err << "planc status: the run has ended without a word; start it again to go on\n";
      return kExitPeerLost;
    }
    absl::SleepFor(kGlance);
  }
}

}  // namespace

int RunStatus(const std::vector<std::string>& args, std::ostream& out, std::ostream& err) {
  const absl::StatusOr<Flags> flags = ParseFlags("status", args);
  if (!flags.ok()) return Usage(std::string(flags.status().message()), err);
  if (flags->positional.size() != 1) return Usage("one run directory is needed", err);
  const std::string format = flags->Get("--format");
  if (flags->Has("--follow") && format == "json") return Usage("--follow prints text", err);
  const std::string& directory = flags->positional[0];
  const absl::StatusOr<LaunchConfig> launch = DetectLaunch();
  const std::string host = launch.ok() ? launch->host : "";
  const absl::StatusOr<RunView> view = ViewRun(directory, host);
  if (!view.ok()) return Usage(std::string(view.status().message()), err);
  if (format == "json") {
    out << StatusJson(*view).dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
    return kExitOk;
  }
  out << StatusText(*view) << std::flush;
  if (!flags->Has("--follow")) return kExitOk;
  return Follow(directory, host, out, err);
}

}  // namespace planc
