#ifndef PLANC_COMPILER_SPEC_CHECK_JOB_H_
#define PLANC_COMPILER_SPEC_CHECK_JOB_H_

#include <string>
#include <vector>

#include "schemas/job.pb.h"

namespace planc {

// What is wrong with a resolved job that comes from elsewhere than LoadJob, such as the one inside
// a plan file; empty when LoadJob could have resolved it. Each message names the keys. Runs the
// types, ranges and rules of job files, and wants every key set that LoadJob sets. Never crashes on
// any job.
std::vector<std::string> CheckResolvedJob(const proto::Job& job);

}  // namespace planc

#endif  // PLANC_COMPILER_SPEC_CHECK_JOB_H_
