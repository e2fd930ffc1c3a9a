#include "compiler/spec/validate_job.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/spec/rule.h"

namespace planc {
namespace {

// Where the values that are not written came from, one remark for each kind of origin.
std::vector<std::string> Provenance(const std::vector<std::string>& paths, const Facts& facts) {
  std::vector<std::string> defaults;
  std::vector<std::string> preset;
  std::vector<std::string> remarks;
  std::string preset_name;
  for (const std::string& path : paths) {
    const Origin& origin = facts.origins.at(path);
    if (origin.kind == Origin::Kind::kDefault) {
      defaults.push_back(path);
    } else if (origin.kind == Origin::Kind::kPreset) {
      preset.push_back(path);
      preset_name = origin.file;
    } else {
      remarks.push_back(absl::StrCat(path, " is derived: ", origin.text));
    }
  }
  if (!preset.empty()) {
    remarks.push_back(
        absl::StrCat("from the preset ", preset_name, ": ", absl::StrJoin(preset, ", ")));
  }
  if (!defaults.empty()) {
    remarks.push_back(absl::StrCat("default values: ", absl::StrJoin(defaults, ", ")));
  }
  return remarks;
}

void Report(const std::string& job_file, const Rule& rule, const Finding& finding,
            const Facts& facts, DiagnosticList& diagnostics) {
  Span primary{job_file, 1, 1, 1};
  std::vector<LabeledSpan> others;
  std::vector<std::string> unwritten;
  std::string label;
  for (const std::string& path : rule.keys) {
    const auto found = facts.origins.find(path);
    if (found == facts.origins.end()) continue;
    if (!facts.IsWritten(path)) {
      unwritten.push_back(path);
    } else if (label.empty()) {
      primary = SpanOf(found->second);
      label = path;
    } else {
      others.push_back({SpanOf(found->second), path});
    }
  }
  Diagnostic& diagnostic = diagnostics.Add(rule.code, primary, finding.message);
  diagnostic.label = label;
  diagnostic.secondary = std::move(others);
  diagnostic.notes = Provenance(unwritten, facts);
  diagnostic.fix = finding.fix;
  diagnostic.proposals = finding.proposals;
}

}  // namespace

void ValidateJob(const std::string& job_file, const ParsedJob& parsed,
                 const std::set<std::string>& unsolved, DiagnosticList& diagnostics) {
  const Facts facts = FactsOf(parsed.job, parsed.origins);
  std::set<std::string> unusable = unsolved;
  for (const std::vector<Rule>* rules : {&MeshRules(), &PipelineRules(), &ModelRules(),
                                         &TrainingRules(), &AvailabilityRules(), &EffectRules()}) {
    for (const Rule& rule : *rules) {
      const bool skip = std::any_of(rule.keys.begin(), rule.keys.end(), [&](const auto& key) {
        return parsed.origins.count(key) == 0 || unusable.count(key) > 0;
      });
      if (skip) continue;
      const std::optional<Finding> finding = rule.check(facts);
      if (!finding.has_value()) continue;
      Report(job_file, rule, *finding, facts, diagnostics);
      unusable.insert(rule.doubts.begin(), rule.doubts.end());
    }
  }
}

}  // namespace planc
