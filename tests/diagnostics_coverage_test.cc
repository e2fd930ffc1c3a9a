// Every code of diagnostics.def has a job in tests/fail that produces it, and each of those jobs
// produces exactly what its first lines expect:
//
//   # expect: PL0123 LINE:COLUMN     one line for each diagnostic; 0:0 is the file as a whole
//   # set: a.b=c                     an override, as --set
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "compiler/diagnostics/diagnostic.h"
#include "compiler/diagnostics/render_text.h"
#include "compiler/spec/load_job.h"
#include "gtest/gtest.h"

namespace planc {
namespace {

constexpr char kFolder[] = "tests/fail";

// Codes that a job file of this folder cannot produce, and where they are tested.
const std::map<std::string, std::string>& Exemptions() {
  static const auto* const kExemptions = new std::map<std::string, std::string>{
      {"PL0003", "needs a file above 1 MiB: load_job_test"},
      {"PL0257", "is about planc run: planc/check_test"},
      {"PL0258", "is about the machine: planc/open_files_notice_test"},
      {"PL0301", "needs the compiler: planc/plan_test"},
      {"PL0302", "needs the compiler: planc/plan_test, planc/deadline_rule_test"},
      {"PL0303", "needs the compiler: planc/plan_test, planc/deadline_rule_test"},
      {"PL0401", "needs a faulty plan: tests/mutation"},
      {"PL0402", "is about plan files: planc/plan_test"},
      {"PL0501", "needs a checkpoint: planc/check_resume_test"},
      {"PL0502", "needs a checkpoint: planc/check_resume_test"},
      {"PL0503", "needs a checkpoint: planc/check_resume_test"},
      {"PL0601", "needs data: planc/check_data_test"},
      {"PL0602", "needs data: planc/check_data_test"},
  };
  return *kExemptions;
}

struct FailJob {
  std::string path;
  std::vector<std::string> sets;
  std::set<std::string> expected;  // "PL0123 LINE:COLUMN"
};

FailJob ReadFailJob(const std::string& path) {
  FailJob job{path, {}, {}};
  std::ifstream stream(path);
  std::string line;
  while (std::getline(stream, line) && !line.empty() && line[0] == '#') {
    if (absl::StartsWith(line, "# expect: ")) job.expected.insert(line.substr(10));
    if (absl::StartsWith(line, "# set: ")) job.sets.push_back(line.substr(7));
  }
  return job;
}

std::vector<FailJob> AllFailJobs() {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    if (entry.path().extension() == ".yaml") paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<FailJob> jobs;
  for (const std::string& path : paths) jobs.push_back(ReadFailJob(path));
  return jobs;
}

TEST(DiagnosticsCoverageTest, JobsProduceWhatTheyExpect) {
  const std::vector<FailJob> jobs = AllFailJobs();
  ASSERT_GT(jobs.size(), 50u);
  for (const FailJob& job : jobs) {
    ASSERT_FALSE(job.expected.empty()) << job.path << " expects nothing";
    const LoadResult result = LoadJob(job.path, job.sets);
    std::set<std::string> found;
    for (const Diagnostic& diagnostic : result.diagnostics.entries()) {
      found.insert(absl::StrCat(InfoOf(diagnostic.code).id, " ", diagnostic.span.line, ":",
                                diagnostic.span.column));
    }
    EXPECT_EQ(found, job.expected)
        << job.path << "\n"
        << RenderText(result.diagnostics, result.sources, /*colour=*/false);
    EXPECT_EQ(result.ok, !result.diagnostics.HasErrors()) << job.path;
  }
}

TEST(DiagnosticsCoverageTest, EveryCodeHasAJob) {
  std::set<std::string> covered;
  for (const FailJob& job : AllFailJobs()) {
    for (const std::string& expected : job.expected) covered.insert(expected.substr(0, 6));
  }
  for (const DiagnosticInfo& info : AllDiagnostics()) {
    const bool exempt = Exemptions().count(info.id) > 0;
    EXPECT_NE(covered.count(info.id) > 0, exempt)
        << info.id << " (" << info.name << ") "
        << (exempt ? "is exempt, but has a job" : "has no job in tests/fail");
  }
  for (const auto& [id, reason] : Exemptions()) {
    EXPECT_NE(FindDiagnostic(id), nullptr) << id << ": " << reason;
  }
}

// The rendering of every diagnostic keeps to 100 columns.
TEST(DiagnosticsCoverageTest, RenderingsFit) {
  for (const FailJob& job : AllFailJobs()) {
    const LoadResult result = LoadJob(job.path, job.sets);
    std::istringstream lines(RenderText(result.diagnostics, result.sources, /*colour=*/false));
    std::string line;
    while (std::getline(lines, line)) EXPECT_LE(line.size(), 100u) << job.path << ": " << line;
  }
}

}  // namespace
}  // namespace planc
