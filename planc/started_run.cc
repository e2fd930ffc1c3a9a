#include "planc/started_run.h"

#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "planc/text.h"
#include "planc/versions.h"
#include "runtime/metrics/metrics_writer.h"

namespace planc {
namespace {

std::string Line(const std::string& name, const std::string& value) {
  return absl::StrCat("  ", name, std::string(13 - name.size(), ' '), value, "\n");
}

std::string IfThere(const std::string& name, const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path, error) ? Line(name, path) : "";
}

}  // namespace

RunRequest RequestOf(const LoadedPlan& loaded, const RunOptions& options,
                     const LaunchConfig& launch, bool fresh) {
  RunRequest request;
  request.plan_hash = loaded.hash;
  for (const auto& [name, version] : LinkedVersions()) {
    if (name == "planc") request.version = version;
  }
  request.base_directory = options.base_directory;
  request.resume = options.resume_from;
  request.stop_after = options.stop_after;
  request.fresh = fresh;
  request.launch = absl::StrCat(LaunchSourceName(launch.source), " ", launch.job);
  request.restart = launch.restart;
  request.lock.host = launch.host;
  return request;
}

std::string StartText(const OwnedRun& run) {
  const RunFolders& folders = run.folders();
  const RunRecord& record = run.record();
  std::string text;
  if (run.start().complete) {
    absl::StrAppend(&text, "run ", record.id, " in ", folders.run,
                    " is complete: ", record.last_step,
                    record.last_step == 1 ? " step is" : " steps are",
                    " done and no more are asked for. Raise run.steps to go on with it, or begin "
                    "a new run with --fresh, which moves its files aside.\n");
  } else {
    absl::StrAppend(&text, "run ", record.id, record.starts > 1 ? " goes on in " : " begins in ",
                    folders.run, "\n", Line("checkpoints", folders.checkpoints),
                    Line("metrics", absl::StrCat(folders.run, "/", kMetricsName,
                                                 ", TensorBoard event files beside it")));
  }
  for (const std::string& notice : run.start().notices) absl::StrAppend(&text, notice, "\n");
  return Wrap(text, 2);
}

std::string EndText(const OwnedRun& run, int code) {
  const RunFolders& folders = run.folders();
  const RunRecord& record = run.record();
  std::string text;
  if (!run.start().complete) {
    absl::StrAppend(&text, "run ", record.id, ": ", RunStateName(record.state), " after step ",
                    record.last_step, " of ", record.job.run().steps(), ", exit code ", code, "\n");
  }
  const std::string checkpoint = run.NewestCheckpoint();
  absl::StrAppend(&text, Line("directory", folders.run),
                  Line("checkpoint", checkpoint.empty() ? "none" : checkpoint),
                  IfThere("metrics", absl::StrCat(folders.run, "/", kMetricsName)),
                  IfThere("loss curve", folders.run + "/loss.svg"),
                  IfThere("logs", folders.run + "/logs"));
  return Wrap(text, 2);
}

}  // namespace planc
