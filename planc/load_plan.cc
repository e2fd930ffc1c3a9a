#include "planc/load_plan.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/diagnostics/render_text.h"
#include "compiler/pipeline.h"
#include "compiler/spec/check_job.h"
#include "planc/commands.h"
#include "planc/deadline_rule.h"
#include "planc/fit.h"
#include "planc/text.h"
#include "runtime/data/mapped_file.h"
#include "schemas/fault.h"
#include "schemas/plan_io.h"

namespace planc {
namespace {

constexpr size_t kViolationsShown = 20;

int Fail(const std::string& command, const absl::Status& status, int code, std::ostream& err) {
  err << Wrap(absl::StrCat(command, ": ", std::string(status.message())), 2) << "\n";
  return code;
}

absl::Status WriteTo(const std::string& path, const std::string& bytes) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file < 0) return SystemError(path + ": cannot write", errno);
  int error = 0;
  for (size_t done = 0; done < bytes.size() && error == 0;) {
    const ssize_t written = write(file, bytes.data() + done, bytes.size() - done);
    if (written >= 0) done += static_cast<size_t>(written);
    if (written < 0 && errno != EINTR) error = errno;
  }
  // Network file systems may tell only now that the disk is full.
  if (close(file) != 0 && error == 0 && errno != EINTR) error = errno;
  return error == 0 ? absl::OkStatus() : SystemError(path + ": cannot write", error);
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
  const std::vector<std::string> problems = CheckResolvedJob(plan->job);
  for (size_t i = 0; i < problems.size() && i < kViolationsShown; ++i) {
    const std::string line =
        absl::StrCat("error[PL0402]: ", path, ": the job inside the plan: ", problems[i]);
    err << Wrap(line, 2) << "\n";
  }
  if (!problems.empty()) return kExitJobError;
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
  const absl::StatusOr<int> file = OpenRegularFile(path);
  if (!file.ok()) return file.status();
  std::string bytes;
  std::vector<char> buffer(size_t{1} << 20);
  ssize_t got = 1;
  while (got > 0) {
    got = read(*file, buffer.data(), buffer.size());
    if (got > 0) bytes.append(buffer.data(), static_cast<size_t>(got));
    if (got < 0 && errno == EINTR) got = 1;
  }
  const absl::Status status =
      got == 0 ? absl::OkStatus() : SystemError(path + ": cannot be read", errno);
  close(*file);
  if (!status.ok()) return status;
  return bytes;
}

absl::Status WriteFile(const std::string& path, const std::string& bytes) {
  struct stat info {};
  const bool exists = stat(path.c_str(), &info) == 0;
  if (exists && S_ISDIR(info.st_mode)) return SystemError(path + ": cannot write", EISDIR);
  // A device or a pipe is written to, never replaced.
  if (exists && !S_ISREG(info.st_mode)) return WriteTo(path, bytes);
  const std::string temporary = path + ".partial";
  const absl::Status written = WriteTo(temporary, bytes);
  if (!written.ok()) {
    unlink(temporary.c_str());
    return written;
  }
  if (std::rename(temporary.c_str(), path.c_str()) != 0) {
    return SystemError(path + ": cannot write", errno);
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
  const LoadResult* const job = loaded->job ? &*loaded->job : nullptr;
  DiagnosticList deadline;
  AddDeadlineFinding(loaded->plan, job, &deadline);
  err << RenderText(deadline, job == nullptr ? SourceTexts() : job->sources, ShowsColour(err));
  const int fits = CheckFits(loaded->plan, path, sets, job, err);
  return fits == kExitOk && deadline.HasErrors() ? kExitJobError : fits;
}

}  // namespace planc
