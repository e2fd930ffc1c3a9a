#ifndef PLANC_PLANC_DEVICE_NOTICE_H_
#define PLANC_PLANC_DEVICE_NOTICE_H_

#include "compiler/diagnostics/diagnostic.h"
#include "compiler/spec/load_job.h"

namespace planc {

// The device that this program runs; jobs for the others are checked and planned.
inline constexpr char kRunnableDevice[] = "host";

// Adds PL0257 to `list` when the job is for a device that this program cannot run. REQUIRES:
// job.ok.
void AddDeviceNotice(const LoadResult& job, DiagnosticList* list);

}  // namespace planc

#endif  // PLANC_PLANC_DEVICE_NOTICE_H_
