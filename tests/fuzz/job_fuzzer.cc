// Fuzzes the way from the text of a job file to diagnostics. The input is up to three texts divided
// by zero bytes: the job file, one --set argument, and base.yaml, which the job may include.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "compiler/diagnostics/render_json.h"
#include "compiler/diagnostics/render_text.h"
#include "compiler/spec/load_job.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::vector<std::string> parts(1);
  for (size_t index = 0; index < size; ++index) {
    if (data[index] == 0 && parts.size() < 3) {
      parts.emplace_back();
    } else {
      parts.back().push_back(static_cast<char>(data[index]));
    }
  }
  std::map<std::string, std::string> files = {{"job.yaml", parts[0]}};
  std::vector<std::string> sets;
  if (parts.size() > 1 && !parts[1].empty()) sets.push_back(parts[1]);
  if (parts.size() > 2) files["base.yaml"] = parts[2];

  const planc::LoadResult result = planc::LoadJobText("job.yaml", files, sets);
  // Either it is a job or a fragment, or somebody is told why not.
  if ((result.ok || result.partial) == result.diagnostics.HasErrors()) std::abort();
  const std::string text = planc::RenderText(result.diagnostics, result.sources, /*colour=*/true);
  const std::string json = planc::RenderJson(result.diagnostics);
  const std::string sarif = planc::RenderSarif(result.diagnostics, result.sources);
  const std::string github = planc::RenderGithub(result.diagnostics, result.sources);
  if (result.diagnostics.entries().empty() != text.empty()) std::abort();
  return 0;
}
