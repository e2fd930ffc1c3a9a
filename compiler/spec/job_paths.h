#ifndef PLANC_COMPILER_SPEC_JOB_PATHS_H_
#define PLANC_COMPILER_SPEC_JOB_PATHS_H_

#include <map>
#include <string>

#include "schemas/job_spec.h"

namespace planc {

// Rewrites every path of the job that was not given as an absolute one, from how the working
// directory sees it to how the folder of the job file `job_path` sees it: the same job then gives
// the same plan wherever it is planned.
void RelateToJobFile(const std::string& job_path, const std::map<std::string, Origin>& origins,
                     proto::Job& job);

}  // namespace planc

#endif  // PLANC_COMPILER_SPEC_JOB_PATHS_H_
