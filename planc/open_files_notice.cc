#include "planc/open_files_notice.h"

#include "absl/strings/str_cat.h"
#include "runtime/process_group/descriptor_need.h"

namespace planc {

void AddOpenFilesNotice(const Plan& plan, const LoadResult& job, int64_t limit,
                        DiagnosticList* list) {
  const DescriptorNeed need = MostDescriptors(plan);
  if (need.total() <= limit) return;
  const Origin& origin = job.spec.origins.at("cluster.nodes");
  Diagnostic& notice = list->Add(
      DiagnosticCode::kTooManyOpenFiles, {origin.file, origin.line, origin.column, origin.length},
      absl::StrCat(NeedText(need), "; this machine allows a process ", limit));
  notice.label = "cluster.nodes";
  notice.fix = "nothing, where the machines of the run allow more (ulimit -Hn there)";
}

}  // namespace planc
