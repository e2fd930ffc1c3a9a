#include "planc/command/check_data.h"

#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "planc/text.h"
#include "runtime/data/token_loader.h"

namespace planc {
namespace {

// Where the key that begins `finding` stands in the job.
Span PlaceOf(const std::string& finding, const std::string& job_path, const JobSpec& spec) {
  const char* const key =
      absl::StartsWith(finding, "data.validation: ") ? "data.validation" : "data.train";
  const auto origin = spec.origins.find(key);
  if (origin == spec.origins.end() || origin->second.line == 0) return Span{job_path};
  return {origin->second.file, origin->second.line, origin->second.column, origin->second.length};
}

std::string AmountText(const DataAmount& amount) {
  return absl::StrCat(GroupedText(amount.tokens), " tokens in ", amount.files,
                      amount.files == 1 ? " file, " : " files, ", GroupedText(amount.windows),
                      amount.windows == 1 ? " window" : " windows");
}

}  // namespace

std::string CheckData(const std::string& job_path, const JobSpec& spec, DiagnosticList* list) {
  std::string base = std::filesystem::path(job_path).parent_path().string();
  if (base.empty()) base.assign(1, '.');
  const DataFindings findings = InspectData(spec.job, base);
  for (const std::string& error : findings.errors) {
    list->Add(DiagnosticCode::kDataUnusable, PlaceOf(error, job_path, spec), error);
  }
  for (const std::string& warning : findings.warnings) {
    list->Add(DiagnosticCode::kDataSuspicious, PlaceOf(warning, job_path, spec), warning);
  }
  if (!findings.errors.empty()) return "";
  const double sequences =
      static_cast<double>(spec.job.run().steps()) * static_cast<double>(spec.job.batch().global());
  std::string text =
      absl::StrCat("data.train: ", AmountText(findings.train),
                   absl::StrFormat(", each used %.2f times",
                                   sequences / static_cast<double>(findings.train.windows)));
  if (findings.validation.files > 0) {
    absl::StrAppend(&text, "\n  data.validation: ", AmountText(findings.validation));
  }
  return text;
}

}  // namespace planc
