#ifndef PLANC_PLANC_COMMAND_CHECK_DATA_H_
#define PLANC_PLANC_COMMAND_CHECK_DATA_H_

#include <string>

#include "compiler/diagnostics/diagnostic.h"
#include "compiler/spec/load_job.h"

namespace planc {

// Reads all data of the job of `job_path`, as `planc run` does before it starts anything, and adds
// what is wrong with it to `list` as PL0601 (errors) and PL0602 (warnings), at data.train or
// data.validation, in the words of `planc run`. Returns lines that say how much data there is and
// how often the run goes through it, for data without errors. REQUIRES: the job has no errors.
std::string CheckData(const std::string& job_path, const JobSpec& spec, DiagnosticList* list);

}  // namespace planc

#endif  // PLANC_PLANC_COMMAND_CHECK_DATA_H_
