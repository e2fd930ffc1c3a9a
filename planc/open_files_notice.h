#ifndef PLANC_PLANC_OPEN_FILES_NOTICE_H_
#define PLANC_PLANC_OPEN_FILES_NOTICE_H_

#include <cstdint>

#include "compiler/diagnostics/diagnostic.h"
#include "compiler/spec/load_job.h"
#include "schemas/plan.h"

namespace planc {

// Adds PL0258 to `list` when a rank of the plan needs more open files than `limit`, what a process
// of this machine may raise its limit to. `job` is what the plan was made from. REQUIRES: job.ok.
void AddOpenFilesNotice(const Plan& plan, const LoadResult& job, int64_t limit,
                        DiagnosticList* list);

}  // namespace planc

#endif  // PLANC_PLANC_OPEN_FILES_NOTICE_H_
