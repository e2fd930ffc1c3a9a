#include "compiler/spec/load_job.h"

#include <filesystem>
#include <optional>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "compiler/spec/choose_fixes.h"
#include "compiler/spec/file_reader.h"
#include "compiler/spec/include.h"
#include "compiler/spec/job_paths.h"
#include "compiler/spec/parse_job.h"
#include "compiler/spec/resolve_job.h"
#include "compiler/spec/validate_job.h"

namespace planc {
namespace {

// Whether the file says that it is no job by itself.
bool IsFragment(const Node& root) {
  const Node* const partial = root.Find(kPartialKey);
  return partial != nullptr && partial->kind == Node::Kind::kScalar && partial->text == "true";
}

// The job that `root` describes. Errors in values and between keys are independent of each other:
// each rule runs if what it reads has usable values.
ParsedJob CheckTree(const std::string& path, const Node& root, DiagnosticList& diagnostics) {
  ParsedJob parsed = ParseJob(root, diagnostics);
  FillKeys(path, parsed, diagnostics);
  const std::set<std::string> unsolved = DeriveKeys(parsed, diagnostics);
  ValidateJob(path, parsed, unsolved, diagnostics);
  return parsed;
}

// What the job would report with `changes`, which replace what is written.
DiagnosticList TryChanges(const std::string& path, const Node& root, const Proposal& changes) {
  DiagnosticList diagnostics;
  Node changed = root;
  SourceTexts ignored;
  std::vector<std::string> sets;
  for (const Change& change : changes) sets.push_back(change.key + "=" + change.value);
  ApplySets(sets, changed, ignored, diagnostics);
  CheckTree(path, changed, diagnostics);
  return diagnostics;
}

// Reads the tree, then checks it; the tree of a file that does not parse is not checked.
void RunPhases(const std::string& path, const FileReader& reader,
               const std::vector<std::string>& sets, LoadResult& result) {
  DiagnosticList& diagnostics = result.diagnostics;
  std::optional<Node> root = ReadWithIncludes(path, reader, result.sources, diagnostics);
  if (!root.has_value()) return;
  ApplySets(sets, *root, result.sources, diagnostics);
  if (diagnostics.HasErrors()) return;

  if (IsFragment(*root)) {
    ParseJob(*root, diagnostics);
    result.partial = !diagnostics.HasErrors();
    return;
  }
  ParsedJob parsed = CheckTree(path, *root, diagnostics);
  ChooseFixes([&](const Proposal& changes) { return TryChanges(path, *root, changes); },
              diagnostics);
  if (diagnostics.HasErrors()) return;
  RelateToJobFile(path, parsed.origins, parsed.job);
  // Says something about the file, not about the job: no plan knows it.
  parsed.job.clear_partial();
  result.spec.job = std::move(parsed.job);
  result.spec.origins = std::move(parsed.origins);
  result.ok = true;
}

LoadResult Load(const std::string& path, const FileReader& reader,
                const std::vector<std::string>& sets) {
  LoadResult result;
  RunPhases(path, reader, sets, result);
  result.diagnostics.Sort();
  return result;
}

}  // namespace

LoadResult LoadJob(const std::string& path, const std::vector<std::string>& sets) {
  return Load(std::filesystem::path(path).lexically_normal().string(), ReadRegularFile, sets);
}

LoadResult LoadJobText(const std::string& path, const std::map<std::string, std::string>& files,
                       const std::vector<std::string>& sets) {
  const FileReader reader = [&files](const std::string& name) -> absl::StatusOr<std::string> {
    const auto found = files.find(name);
    if (found == files.end()) return absl::NotFoundError("there is no such file");
    return found->second;
  };
  return Load(path, reader, sets);
}

}  // namespace planc
