// planc check: all rules of job files, without a cluster.
#include <filesystem>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/catalog/parameter_count.h"
#include "compiler/diagnostics/render_json.h"
#include "compiler/diagnostics/render_text.h"
#include "compiler/pipeline.h"
#include "compiler/spec/load_job.h"
#include "nlohmann/json.hpp"
#include "planc/check_resume.h"
#include "planc/command/check_data.h"
#include "planc/commands.h"
#include "planc/deadline_rule.h"
#include "planc/device_notice.h"
#include "planc/fit.h"
#include "planc/flags.h"
#include "planc/load_plan.h"
#include "planc/open_files_notice.h"
#include "planc/text.h"
#include "runtime/checkpoint/huggingface/initial_weights.h"
#include "runtime/data/mapped_file.h"
#include "runtime/launch/descriptor_limit.h"
#include "schemas/counted.h"

namespace planc {
namespace {

// "dp_shard 2 tp 2": the axes above 1.
std::string MeshText(const proto::Mesh& mesh) {
  std::vector<std::string> axes;
  for (int index = 0; index < mesh.GetDescriptor()->field_count(); ++index) {
    const auto* field = mesh.GetDescriptor()->field(index);
    const int64_t size = mesh.GetReflection()->GetInt64(mesh, field);
    if (size > 1) axes.push_back(absl::StrCat(field->name(), " ", size));
  }
  return axes.empty() ? "one rank" : absl::StrJoin(axes, " ");
}

// One line about a job without errors.
std::string Summary(const JobSpec& spec) {
  const proto::Job& job = spec.job;
  const int64_t ranks = job.cluster().nodes() * job.cluster().gpus_per_node();
  const int64_t data_parallel = job.mesh().dp_replicate() * job.mesh().dp_shard();
  const int64_t accumulation = job.batch().global() / (job.batch().micro() * data_parallel);
  return absl::StrCat(
      Counted(CountText(static_cast<double>(ParameterCount(job.model()))), "parameter"), ", ",
      Counted(ranks, "rank"), " (", MeshText(job.mesh()), "), ",
      Counted(accumulation, "microbatch"), " of ", job.batch().micro(), " x ",
      Counted(job.batch().sequence(), "token"));
}

// All jobs as one list, for programs.
std::string RenderAll(const std::string& format, const DiagnosticList& all,
                      const SourceTexts& sources) {
  if (format == "json") return RenderJson(all);
  return format == "sarif" ? RenderSarif(all, sources) : RenderGithub(all, sources);
}

// With --resume: whether the job, which has no errors, would go on from `path`.
int CheckJobResume(const std::string& job, const Flags& flags, DiagnosticList* all,
                   std::ostream& out, std::ostream& err) {
  const std::string format = flags.Get("--format");
  LoadedPlan loaded;
  std::ostringstream problems;  // warnings were shown before
  const int code = LoadPlan("planc check", job, flags.All("--set"), problems, &loaded);
  if (code != kExitOk) {
    err << problems.str();
    return code;
  }
  DiagnosticList found;
  const std::optional<ResumeOutlook> outlook =
      CheckResume(job, loaded, flags.Get("--resume"), &found);
  all->Append(found);
  if (format == "text") {
    err << RenderText(found, loaded.job->sources, ShowsColour(err));
    if (outlook.has_value()) out << OutlookText(*outlook);
  } else if (format == "json") {
    nlohmann::ordered_json json = nlohmann::ordered_json::parse(RenderJson(*all));
    json["resume"] = nullptr;
    if (outlook.has_value()) {
      json["resume"] = nlohmann::ordered_json::parse(OutlookJson(*outlook));
    }
    out << json.dump(2) << "\n";
  } else {
    out << RenderAll(format, *all, loaded.job->sources);
  }
  return found.HasErrors() ? kExitJobError : kExitOk;
}

// With --data: whether the weights that a new run begins with fit the model.
void CheckInitial(const std::string& job_path, const Plan& plan, DiagnosticList* found) {
  const std::string& initial = plan.job.checkpoint().initial();
  if (initial == "none") return;
  const std::string folder = std::filesystem::path(job_path).parent_path().string();
  const absl::Status fits = CheckInitialWeights(PathIn(folder, initial), plan);
  if (fits.ok()) return;
  found->Add(DiagnosticCode::kCheckpointUnusable, Span{job_path}, std::string(fits.message()));
}

// All rules of one job, at last whether it fits in memory. With format text they are written here.
// Errors: Internal, for faults of the compiler.
absl::Status CheckJob(const std::string& path, const Flags& flags, DiagnosticList* all,
                      SourceTexts* sources, std::ostream& out, std::ostream& err) {
  const std::vector<std::string> sets = flags.All("--set");
  const LoadResult result = LoadJob(path, sets);
  sources->insert(result.sources.begin(), result.sources.end());
  DiagnosticList found = result.diagnostics;
  const std::string format = flags.Get("--format");
  std::optional<FitReport> misfit;
  std::string data;
  if (result.ok) {
    if (flags.Has("--data")) data = CheckData(path, result.spec, &found);
    AddDeviceNotice(result, &found);
    const absl::StatusOr<Plan> plan = CompilePlan(result.spec);
    if (!plan.ok()) return plan.status();
    AddDeadlineFinding(*plan, &result, &found);
    if (flags.Has("--data")) CheckInitial(path, *plan, &found);
    AddOpenFilesNotice(*plan, result, HighestDescriptorLimit(), &found);
    misfit = ReportMisfit(*plan, &result, LoaderOf(path, sets));
  }
  if (misfit.has_value()) {
    Diagnostic verdict = misfit->verdict;
    // For people the same stands in a table.
    if (format != "text") {
      verdict.notes.insert(verdict.notes.end(), misfit->details.begin(), misfit->details.end());
    }
    found.Append(std::move(verdict));
  }
  found.Sort();
  all->Append(found);
  if (format != "text") return absl::OkStatus();
  err << RenderText(found, result.sources, ShowsColour(err));
  if (misfit.has_value()) {
    err << misfit->tables;
  } else if (result.partial && !found.HasErrors()) {
    out << Wrap(path + ": fragment: included by others, not checked as a job", 2) << "\n";
  } else if (!found.HasErrors()) {
    out << Wrap(absl::StrCat(path, ": ok, ", Summary(result.spec)), 2) << "\n";
    if (!data.empty()) out << "  " << Wrap(data, 2) << "\n";
  }
  return absl::OkStatus();
}

// What does not fit is told apart from what is wrong, as long as nothing is wrong, and so is data
// that cannot be used, as long as all else is well.
int ExitCodeOf(const DiagnosticList& all) {
  int code = kExitOk;
  for (const Diagnostic& diagnostic : all.entries()) {
    if (diagnostic.severity != Severity::kError) continue;
    if (diagnostic.code == DiagnosticCode::kDataUnusable) {
      if (code == kExitOk) code = kExitTrainingFault;
    } else if (diagnostic.code == DiagnosticCode::kDoesNotFit) {
      code = kExitDoesNotFit;
    } else {
      return kExitJobError;
    }
  }
  return code;
}

}  // namespace

int RunCheck(const std::vector<std::string>& args, std::ostream& out, std::ostream& err) {
  const absl::StatusOr<Flags> flags = ParseFlags("check", args);
  if (!flags.ok()) return UsageError("check", flags.status(), err);
  if (flags->positional.empty()) return UsageError("check", "no job file is named", err);
  const bool resume = flags->Has("--resume");
  if (resume && flags->positional.size() > 1) {
    return UsageError("check", "--resume is about one job", err);
  }
  const std::string format = flags->Get("--format");

  DiagnosticList all;
  SourceTexts sources;
  for (const std::string& path : flags->positional) {
    const absl::Status checked = CheckJob(path, *flags, &all, &sources, out, err);
    if (checked.ok()) continue;
    err << Wrap(absl::StrCat("planc check: ", path, ": ", std::string(checked.message())), 2)
        << "\n";
    return kExitInternal;
  }
  if (resume && !all.HasErrors()) {
    return CheckJobResume(flags->positional[0], *flags, &all, out, err);
  }
  if (format != "text") out << RenderAll(format, all, sources);
  return ExitCodeOf(all);
}

}  // namespace planc
