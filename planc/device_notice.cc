#include "planc/device_notice.h"

#include <string>

#include "absl/strings/str_cat.h"

namespace planc {

void AddDeviceNotice(const LoadResult& job, DiagnosticList* list) {
  const std::string& device = job.spec.job.cluster().device();
  if (device == kRunnableDevice) return;
  const Origin& origin = job.spec.origins.at("cluster.device");
  Diagnostic& notice = list->Add(
      DiagnosticCode::kDeviceDoesNotRun, {origin.file, origin.line, origin.column, origin.length},
      absl::StrCat("a job for ", device, " can be checked and planned, but not run: `planc run` ",
                   "runs device ", kRunnableDevice, " only"));
  notice.label = "cluster.device";
  notice.fix = absl::StrCat("nothing, to plan ahead; --set cluster.device=", kRunnableDevice,
                            " to run it on CPUs");
}

}  // namespace planc
