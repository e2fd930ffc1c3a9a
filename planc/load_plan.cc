#include "planc/load_plan.h"

#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/diagnostics/render_text.h"
#include "compiler/pipeline.h"
#include "planc/commands.h"
#include "planc/fit.h"
#include "planc/text.h"
#include "schemas/plan_io.h"

namespace planc {
namespace {

constexpr size_t kViolationsShown = 20;

int Fail(const std::string& command, const absl::Status& status, int code, std::ostream& err) {
  err << Wrap(absl::StrCat(command, ": ", std::string(status.message())), 2) << "\n";
  return code;
}

int LoadPlanFile(const std::string& command, const std::string& path, const std::string& bytes,
                 const std::vector<std::string>& sets, std::ostream& err, LoadedPlan* loaded) {
  if (!sets.empty()) {
    return Fail(command,
                absl::InvalidArgumentError(absl::StrCat(
                    path, " is a plan file, which nothing changes: --set needs the job file")),
                kExitJobError, err);
  }
  absl::StatusOr<Plan> plan = ParsePlan(bytes);
  if (!plan.ok()) {
    return Fail(command,
                absl::InvalidArgumentError(
                    absl::StrCat("error[PL0402]: ", path, ": ", plan.status().message())),
                kExitJobError, err);
  }
  loaded->plan = *std::move(plan);
  return kExitOk;
}

int CompileJobFile(const std::string& command, const std::string& path,
                   const std::vector<std::string>& sets, std::ostream& err, LoadedPlan* loaded) {
  LoadResult& job = loaded->job.emplace(LoadJob(path, sets));
  err << RenderText(job.diagnostics, job.sources, ShowsColour(err));
  if (job.partial) {
    return Fail(command,
                absl::InvalidArgumentError(absl::StrCat(
                    path, ": is a fragment (partial: true), not a job: it is for jobs to include")),
                kExitJobError, err);
  }
  if (!job.ok) return kExitJobError;
  absl::StatusOr<Plan> plan = CompilePlan(job.spec);
  if (!plan.ok()) {
    const bool job_error = plan.status().code() == absl::StatusCode::kInvalidArgument;
    return Fail(command, plan.status(), job_error ? kExitJobError : kExitInternal, err);
  }
  loaded->plan = *std::move(plan);
  return kExitOk;
}

int ReportViolations(const std::vector<Violation>& violations, std::ostream& err) {
  err << "error[PL0401]: the plan is not safe: " << violations.size() << " broken "
      << (violations.size() == 1 ? "promise" : "promises") << "\n";
  for (size_t i = 0; i < violations.size() && i < kViolationsShown; ++i) {
    err << Wrap(absl::StrCat("  ", violations[i].rule, ": ", violations[i].message), 4) << "\n";
  }
  if (violations.size() > kViolationsShown) {
    err << "  ... and " << violations.size() - kViolationsShown << " more\n";
  }
  return kExitUnsafePlan;
}

}  // namespace

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return absl::NotFoundError(absl::StrCat(path, ": cannot be opened"));
  std::ostringstream bytes;
  bytes << in.rdbuf();
  if (in.bad()) return absl::UnavailableError(absl::StrCat(path, ": cannot be read"));
  return bytes.str();
}

absl::Status WriteFile(const std::string& path, const std::string& bytes) {
  const std::string temporary = path + ".partial";
  {
    std::ofstream out(temporary, std::ios::binary | std::ios::trunc);
    out << bytes;
    out.close();
    if (!out) return absl::UnavailableError(absl::StrCat(temporary, ": cannot be written"));
  }
  if (std::rename(temporary.c_str(), path.c_str()) != 0) {
    return absl::UnavailableError(absl::StrCat(path, ": cannot be written"));
  }
  return absl::OkStatus();
}

int LoadPlan(const std::string& command, const std::string& path,
             const std::vector<std::string>& sets, std::ostream& err, LoadedPlan* loaded) {
  const absl::StatusOr<std::string> bytes = ReadFile(path);
  const bool is_plan = bytes.ok() && LooksLikePlan(*bytes);
  // A job file that cannot be read is a diagnostic of LoadJob.
  int code = is_plan ? LoadPlanFile(command, path, *bytes, sets, err, loaded)
                     : CompileJobFile(command, path, sets, err, loaded);
  if (code != kExitOk) return code;
  const VerifyResult verified = VerifyPlan(loaded->plan);
  if (!verified.violations.empty()) return ReportViolations(verified.violations, err);
  loaded->certificate = verified.certificate;
  const absl::StatusOr<std::string> hash = PlanHash(loaded->plan);
  if (!hash.ok()) return Fail(command, hash.status(), kExitInternal, err);
  loaded->hash = *hash;
  return CheckFits(loaded->plan, path, sets, loaded->job ? &*loaded->job : nullptr, err);
}

}  // namespace planc
