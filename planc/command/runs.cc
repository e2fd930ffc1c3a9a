// planc runs: the runs below a folder, from the files that they keep.
#include <algorithm>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "nlohmann/json.hpp"
#include "planc/command/run_view.h"
#include "planc/commands.h"
#include "planc/flags.h"
#include "planc/text.h"
#include "runtime/launch/launch.h"

namespace planc {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

int Usage(const std::string& problem, std::ostream& err) {
  return UsageError("runs", problem, err);
}

// Folders below `root` with a run.json, by name. What cannot be listed is told in `problems`.
std::vector<std::string> RunFolders(const std::string& root, std::vector<std::string>* problems) {
  std::vector<std::string> found;
  std::vector<fs::path> open = {root};
  while (!open.empty()) {
    const fs::path folder = std::move(open.back());
    open.pop_back();
    std::error_code error;
    if (fs::is_regular_file(folder / kRunRecordName, error)) found.push_back(folder.string());
    fs::directory_iterator at(folder, error);
    for (; !error && at != fs::directory_iterator(); at.increment(error)) {
      // Not through links, which may lead back.
      std::error_code unreadable;
      if (fs::is_directory(at->symlink_status(unreadable))) open.push_back(at->path());
    }
    if (error) problems->push_back(absl::StrCat(folder.string(), ": ", error.message()));
  }
  std::sort(found.begin(), found.end());
  return found;
}

Json RunJson(const RunView& view) {
  Json json = {{"directory", view.directory},
               {"id", view.record.id},
               {"job", view.record.job.job()},
               {"state", view.State()},
               {"step", view.step},
               {"steps", view.record.job.run().steps()},
               {"loss", nullptr},
               {"exit_code", nullptr},
               {"began", view.record.began},
               {"checkpoint", view.checkpoint}};
  if (view.last.has_value()) json["loss"] = view.last->loss;
  if (view.record.exit_code.has_value()) json["exit_code"] = *view.record.exit_code;
  return json;
}

}  // namespace

int RunRuns(const std::vector<std::string>& args, std::ostream& out, std::ostream& err) {
  const absl::StatusOr<Flags> flags = ParseFlags("runs", args);
  if (!flags.ok()) return Usage(std::string(flags.status().message()), err);
  if (flags->positional.size() > 1) return Usage("one folder at most", err);
  const std::string format = flags->Get("--format");
  const std::string root = flags->positional.empty() ? "." : flags->positional[0];
  std::error_code error;
  if (!fs::is_directory(root, error)) {
    return Usage(absl::StrCat(root, ": ", error ? error.message() : "not a folder"), err);
  }
  const absl::StatusOr<LaunchConfig> launch = DetectLaunch();
  const std::string host = launch.ok() ? launch->host : "";

  std::vector<std::string> problems;
  TextTable table({"run", "job", "state", ">step", ">of", ">loss", "began", "directory"});
  Json list = Json::array();
  for (const std::string& folder : RunFolders(root, &problems)) {
    const absl::StatusOr<RunView> view = ViewRun(folder, host);
    if (!view.ok()) {
      problems.emplace_back(view.status().message());
      continue;
    }
    list.push_back(RunJson(*view));
    table.Add({view->record.id, view->record.job.job(), view->State(), absl::StrCat(view->step),
               absl::StrCat(view->record.job.run().steps()),
               view->last.has_value() ? absl::StrFormat("%.4f", view->last->loss) : "-",
               view->record.began, folder});
  }
  for (const std::string& problem : problems) {
    err << Wrap(absl::StrCat("planc runs: ", problem), 2) << "\n";
  }
  if (format == "json") {
    out << list.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
  } else if (list.empty()) {
    out << "no runs below " << root << "\n";
  } else {
    out << table.Text(0);
  }
  return kExitOk;
}

}  // namespace planc
